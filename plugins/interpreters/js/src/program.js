// A plugin's files as modules: ES modules and CommonJS, from memory, under the names and lines their author knows.
//
// A file becomes a function of what it may name. CommonJS is one as it is, as in Node.js: not strict unless it says so. Of
// an ES module the statements about other modules are taken out (statements.js), and what it imports is given to it
// (linking.js). Where what it imports may still change, every use of it is rewritten instead, by a parser: a sandbox
// needs 25 ms and more for a kilobyte of that, so it is for TypeScript, circles of modules, and texts in doubt.

import * as noetl from 'noetl-sdk';
import { compiled, rewritten } from './compiling.js';
import { link, mayChange, valueOf } from './linking.js';
import { advice, find } from './packages.js';
import { IMPORTING, statementsOf } from './statements.js';

// A mark of the order of bytes at the beginning is left out.
const decoder = new TextDecoder('utf-8', { fatal: true });

const always = () => true;
const never = () => false;

/** What `import 'noetl'` gives. */
const SDK = { module: { exports: Object.freeze({ __esModule: true, default: noetl, ...noetl }) }, isSteady: always };

export class Program {
  #files;
  /** Files that run or have run: a module, and whether what it exports under a name stays what it is now. */
  #units = new Map();
  /** How much comes before the author's first line, by file. */
  #shifts = new Map();
  #packages = new Map();

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
    return this.#unit(path).module.exports;
  }

  #unit(path) {
    const known = this.#units.get(path);
    if (known !== undefined) return known;
    const content = this.#files.get(path);
    if (content === undefined) throw new Error(`the bundle has no file ${path}`);
    const text = textOf(path, content);
    const unit = { module: { exports: {} }, isSteady: never };
    this.#units.set(path, unit);
    if (path.endsWith('.json')) {
      unit.module.exports = jsonOf(path, text);
      unit.isSteady = always;
    } else {
      this.#run(path, text.replace(/^#!/, '//'), unit);
    }
    return unit;
  }

  #run(path, text, unit) {
    const found = path.endsWith('.ts') ? undefined : statementsOf(text);
    const from = (name) => this.#from(name, path);
    const { exports } = unit.module;
    if (found?.isModule === false) {
      this.#call(path, unit, [], { code: found.code, isStrict: path.endsWith('.mjs') }, exports);
      unit.isSteady = always;
      return;
    }
    const linked = found && link(found, exports, from);
    if (linked === undefined) this.#call(path, unit, [], rewritten(path, text));
    else this.#call(path, unit, linked.given, { code: found.code, isStrict: true, shown: linked.shown });
    const changing = new Map();
    unit.isSteady = (name) => {
      if (!changing.has(name)) changing.set(name, mayChange(name, text, found, from));
      return !changing.get(name);
    };
  }

  #call(path, { module }, given, code, self) {
    const require = (name) => this.#from(name, path).module.exports;
    const importing = (name) => Promise.resolve(name).then((name) => valueOf(require(String(name)), '*'));
    // An ES module may give these names to what it imports.
    const scope = new Map([['exports', module.exports], ['require', require], ['module', module], [IMPORTING, importing], ...given]);
    const { body, shift } = compiled(path, [...scope.keys()], code);
    this.#shifts.set(path, shift);
    body.apply(self, [...scope.values()]);
  }

  #from(name, path) {
    return name === 'noetl' ? SDK : this.#unit(this.#find(name, path));
  }

  #find(name, from) {
    const found = find(name, from, { is: (path) => this.has(path), about: (folder) => this.#about(folder) });
    if (found === undefined) throw new Error(`${from}: there is no module '${name}' in the plugin${advice(name)}`);
    return found;
  }

  /** What a folder's `package.json` says. */
  #about(folder) {
    const path = folder === '' ? 'package.json' : `${folder}/package.json`;
    if (!this.#packages.has(path)) {
      const content = this.#files.get(path);
      this.#packages.set(path, content === undefined ? undefined : jsonOf(path, textOf(path, content)));
    }
    return this.#packages.get(path);
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
