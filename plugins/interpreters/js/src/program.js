// A plugin's files as modules: ES modules and CommonJS, from memory, under the names and lines their author knows.

import { transform } from 'sucrase';
import * as noetl from 'noetl-sdk';

const decoder = new TextDecoder();

/** What `import 'noetl'` gives. */
const SDK = Object.freeze({ __esModule: true, default: noetl, ...noetl });

/** Tried after the name itself. */
const ENDINGS = ['', '.js', '.mjs', '.cjs', '.ts', '.json', '/index.js', '/index.mjs', '/index.ts'];

/** Where a bare name is looked for: the plugin's own folder, and its libraries. */
const PLACES = ['', 'vendor/'];

export class Program {
  #files;
  #modules = new Map();

  constructor(files) {
    this.#files = new Map(files.map(({ path, content }) => [path, content]));
  }

  has(path) {
    return this.#files.has(path);
  }

  /** Runs a file once and gives what it exports. */
  start(path) {
    const known = this.#modules.get(path);
    if (known !== undefined) return known.exports;
    const content = this.#files.get(path);
    if (content === undefined) throw new Error(`the bundle has no file ${path}`);
    const text = decoder.decode(content);
    const module = { exports: {} };
    this.#modules.set(path, module);
    if (path.endsWith('.json')) {
      module.exports = JSON.parse(text);
      return module.exports;
    }
    const require = (name) => (name === 'noetl' ? SDK : this.start(this.#find(name, path)));
    compile(path, text)(module.exports, require, module);
    return module.exports;
  }

  #find(name, from) {
    const base = name.startsWith('.') ? join(from, name) : name;
    const places = name.startsWith('.') ? [''] : PLACES;
    for (const place of places) {
      const main = this.#main(`${place}${base}`);
      const found = [...(main ? [main] : []), ...ENDINGS.map((ending) => `${place}${base}${ending}`)].find((path) =>
        this.has(path),
      );
      if (found !== undefined) return found;
    }
    throw new Error(`${from}: there is no module '${name}' in the plugin`);
  }

  /** Where a library says it begins. */
  #main(folder) {
    const about = this.#files.get(`${folder}/package.json`);
    if (about === undefined) return undefined;
    const { module, main } = JSON.parse(decoder.decode(about));
    return join(`${folder}/package.json`, `./${module ?? main ?? 'index.js'}`);
  }
}

/** Lines stay where they are: what is rewritten is rewritten within its line, and nothing comes before the first. */
function compile(path, text) {
  const transforms = path.endsWith('.ts') ? ['imports', 'typescript'] : ['imports'];
  const { code } = transform(text, { transforms, filePath: path, preserveDynamicImport: true, production: true });
  return (0, eval)(`(function (exports, require, module) {${code}\n})\n//# sourceURL=${path}`);
}

function join(from, relative) {
  const parts = from.split('/').slice(0, -1);
  for (const part of relative.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.' && part !== '') parts.push(part);
  }
  return parts.join('/');
}
