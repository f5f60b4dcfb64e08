// A plugin's files as modules: ES modules and CommonJS, from memory, under the names and lines their author knows.

import { transform } from 'sucrase';
import * as noetl from 'noetl-sdk';
import { at } from './failing.js';
import { advice, find } from './packages.js';

// A mark of the order of bytes at the beginning is left out.
const decoder = new TextDecoder('utf-8', { fatal: true });

/** What `import 'noetl'` gives. */
const SDK = Object.freeze({ __esModule: true, default: noetl, ...noetl });

export class Program {
  #files;
  #modules = new Map();
  /** How much comes before the author's first line, by file. */
  #shifts = new Map();

  constructor(files) {
    this.#files = new Map(files.map(({ path, content }) => [path, content]));
  }

  has(path) {
    return this.#files.has(path);
  }

  /** The column of a line as its author counts it. */
  columnOf(path, line, column) {
    return line === 1 ? Math.max(1, column - (this.#shifts.get(path) ?? 0)) : column;
  }

  /** Runs a file once and gives what it exports. */
  start(path) {
    const known = this.#modules.get(path);
    if (known !== undefined) return known.exports;
    const content = this.#files.get(path);
    if (content === undefined) throw new Error(`the bundle has no file ${path}`);
    const text = textOf(path, content);
    const module = { exports: {} };
    this.#modules.set(path, module);
    if (path.endsWith('.json')) {
      module.exports = jsonOf(path, text);
      return module.exports;
    }
    const require = (name) => (name === 'noetl' ? SDK : this.start(this.#find(name, path)));
    const { body, shift } = compile(path, text);
    this.#shifts.set(path, shift);
    body(module.exports, require, module);
    return module.exports;
  }

  #find(name, from) {
    const found = find(name, from, { is: (path) => this.has(path), about: (folder) => this.#about(folder) });
    if (found === undefined) throw new Error(`${from}: there is no module '${name}' in the plugin${advice(name)}`);
    return found;
  }

  /** What a folder's `package.json` says. */
  #about(folder) {
    const path = `${folder}/package.json`;
    const content = this.#files.get(path);
    return content === undefined ? undefined : jsonOf(path, textOf(path, content));
  }
}

function textOf(path, content) {
  try {
    return decoder.decode(content);
  } catch {
    throw new Error(`${path} is not UTF-8: save it as UTF-8`);
  }
}

function jsonOf(path, text) {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new Error(`${path} is not JSON: ${error.message}`);
  }
}

const AROUND = '(function (exports, require, module) {';
/** Shows where the author's text begins behind what the rewriting puts in front of it. */
const MARK = '/**/';

/** Lines stay where they are: what is rewritten is rewritten within its line, and what comes before the first is
 * counted, so that its columns can be told too. */
function compile(path, text) {
  const transforms = path.endsWith('.ts') ? ['imports', 'typescript'] : ['imports'];
  const options = { transforms, filePath: path, production: true };
  let code;
  try {
    ({ code } = transform(MARK + text.replace(/^#!/, '//'), options));
  } catch (error) {
    const { line, column } = error.loc ?? {};
    if (line === undefined) throw error;
    const said = String(error.message).replace(/^Error transforming .*?: (SyntaxError: )?/, '').replace(/ \(\d+:\d+\)$/, '');
    throw at(new SyntaxError(said), path, line, Math.max(1, line === 1 ? column - MARK.length : column));
  }
  const shift = AROUND.length + code.indexOf(MARK) + MARK.length;
  try {
    return { body: (0, eval)(`${AROUND}${code}\n})\n//# sourceURL=${path}`), shift };
  } catch (error) {
    const { lineNumber: line, columnNumber: column } = error;
    if (!(error instanceof SyntaxError) || line === undefined) throw error;
    throw at(error, path, line, line === 1 ? Math.max(1, column - shift) : column);
  }
}
