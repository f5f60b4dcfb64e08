// The statements of an ES module that are about other modules, taken out of its text within their lines.
//
// What is imported becomes parameters of the function a module is, and what is exported is asked for by functions that see
// its variables; nothing between the statements is looked at. A parameter does not change, so whoever calls this sees to it
// that what is imported does not either. What is not known here is in doubt, and left to a parser.

import { DOUBT, isOfName, scan } from './scanning.js';

const WORDS = /["'`/(){}[\]]|\b(?:import|export)\b/g;
/** What ends a declaration, or begins the next in a list of them. */
const OF_DECLARATION = /["'`/(){}[\],;]|\n\s*(?:const|let|var|function|async|class|export|import|if|for|while|do|switch|try|return|throw)\b/g;

const NAME = '[^\\s,{}*\'"`();:=/.[\\]]+';
const FROM = 'from\\s*([\'"])([^\'"\\\\\\n]+)';
const REST = '(?:[^\\S\\n]*(?:with|assert)\\s*\\{[^}]*\\})?[^\\S\\n]*;?';
const sticky = (...parts) => new RegExp(parts.join(''), 'y');

const BARE_IMPORT = sticky('import\\s*([\'"])([^\'"\\\\\\n]+)\\1', REST);
const IMPORT = sticky('import\\b\\s*(?:(', NAME, ')\\s*,?\\s*)??(?:\\*\\s*as\\s+(', NAME, ')\\s*|\\{([^}]*)\\}\\s*)?', FROM, '\\4', REST);
const EXPORTED = /export\s*([{*]|[a-z]+)/y;
const LIST = sticky('export\\s*\\{([^}]*)\\}(?:\\s*', FROM, '\\2', REST, ')?');
const STAR = sticky('export\\s*\\*\\s*(?:as\\s+(', NAME, ')\\s+)?', FROM, '\\2', REST);
const DECLARATION = sticky('export\\s+(const|let|var)\\b\\s*');
const FUNCTION = sticky('export\\s+(default\\s+)?((?:async\\s+)?function\\b\\s*\\*?)\\s*(', NAME, ')?');
const CLASS = sticky('export\\s+(default\\s+)?(class\\b)\\s*((?!extends\\b)', NAME, ')?');
const DEFAULT = sticky('export\\s+default\\b');
/** A comment hides what is declared. */
const HIDDEN_DEFAULT = /export\s+default\s*(?:\/\*[^]*?\*\/\s*|\/\/[^\n]*\n\s*)+(?:async|function|class)\b/y;
const DECLARED = sticky('\\s*(', NAME, ')\\s*(?==(?!=)|[,;\\n]|$)');
const FLAT_PATTERN = sticky('\\s*[{[]([^{}[\\]()=]*)[}\\]]\\s*=');
const CALLED = /\s*\(/y;
/** No method has a text among its parameters. */
const CALLED_WITH_TEXT = /\s*\(\s*(['"`])[^'"`\n]*\1/y;

const BEFORE_METHODS = /(?:^|[^\w$])(?:async|static|get|set)\s+$/;

/** What the function is called that `import(...)` becomes. */
export const IMPORTING = '__import';
/** The name of a function or class that has none and is the default. */
const UNNAMED = 'default_';

/** What a text imports and exports, and the text without that; undefined where there is doubt. */
export function statementsOf(text) {
  // Most libraries are CommonJS, and have neither word.
  if (!/\b(?:import|export)\b/.test(text)) return { isModule: false, code: text };
  const found = new Statements(text);
  try {
    scan(text, 0, WORDS, (_, end, reader) => found.word(end, reader));
    return found.done();
  } catch (error) {
    if (error === DOUBT) return undefined;
    throw error;
  }
}

class Statements {
  /** In their order: `{ from, names: [[key, local]], whole: local }`. */
  imports = [];
  /** What variables are exported, by the names they are exported under: `{ local, fixed }`. */
  exports = new Map();
  /** What is another module's, by the same names: `{ from, key }`, with `*` for all of it. */
  passed = new Map();
  stars = [];
  code = '';
  isModule = false;
  #text;
  #copied = 0;

  constructor(text) {
    this.#text = text;
  }

  word(end, reader) {
    const text = this.#text;
    const start = end - 'import'.length;
    const before = reader.before(start);
    const isProperty = text[before - 1] === '.' && text.slice(before - 3, before) !== '...';
    // What is rewritten already was looked at with its statement.
    if (start < this.#copied || isProperty || isPartOfName(text, start, end)) return;
    if (text.startsWith('import', start) && this.#called(start, end, text[before - 1])) return;
    if (reader.open.length > 0) return;
    this.isModule = true;
    if (text.startsWith('import', start)) this.#import(start);
    else this.#export(start);
  }

  done() {
    this.code += this.#text.slice(this.#copied);
    return this;
  }

  /** `import(...)` and `import.meta`, which are no statements. The second is left to the engine, which tells of it. */
  #called(start, end, before) {
    if (/^\s*\./.test(this.#text.slice(end, end + 100))) return true;
    if (!matches(CALLED, this.#text, end)) return false;
    const mayBeMethod = before === undefined || '{},;*'.includes(before) || BEFORE_METHODS.test(this.#text.slice(0, start).slice(-20));
    if (mayBeMethod && !matches(CALLED_WITH_TEXT, this.#text, end)) throw DOUBT;
    this.#replace(start, end, IMPORTING);
    return true;
  }

  #import(start) {
    const bare = matches(BARE_IMPORT, this.#text, start);
    const [statement, first, whole, list, , from = bare?.[2]] = bare ? [bare[0]] : (matches(IMPORT, this.#text, start) ?? doubt());
    if (!bare && first === undefined && whole === undefined && list === undefined) doubt();
    const names = namesIn(list ?? '');
    if (first !== undefined) names.unshift(['default', first]);
    this.imports.push({ from, names, whole });
    this.#drop(start, statement);
  }

  #export(start) {
    const [, next] = matches(EXPORTED, this.#text, start) ?? doubt();
    const match = (pattern) => matches(pattern, this.#text, start) ?? doubt();
    if (next === '{') this.#list(start, match(LIST));
    else if (next === '*') this.#star(start, match(STAR));
    else if (next === 'const' || next === 'let' || next === 'var') this.#declaration(start, match(DECLARATION));
    else if (next === 'default') this.#default(start);
    else this.#named(start, match(next === 'class' ? CLASS : FUNCTION));
  }

  #list(start, [statement, list, , from]) {
    const names = namesIn(list);
    if (from === undefined) names.forEach(([local, as]) => this.exports.set(as, { local, fixed: false }));
    else {
      this.imports.push({ from, names: [], whole: undefined });
      names.forEach(([key, as]) => this.passed.set(as, { from, key }));
    }
    this.#drop(start, statement);
  }

  #star(start, [statement, as, , from]) {
    this.imports.push({ from, names: [], whole: undefined });
    if (as === undefined) this.stars.push(from);
    else this.passed.set(as, { from, key: '*' });
    this.#drop(start, statement);
  }

  #declaration(start, [words, kind]) {
    const locals = declaredNames(this.#text, start + words.length);
    for (const local of locals) this.exports.set(local, { local, fixed: kind === 'const' });
    this.#replace(start, start + 'export'.length, blank('export'));
  }

  #default(start) {
    const named = matches(FUNCTION, this.#text, start) ?? matches(CLASS, this.#text, start);
    if (named) return this.#named(start, named);
    if (matches(HIDDEN_DEFAULT, this.#text, start)) doubt();
    const [words] = matches(DEFAULT, this.#text, start) ?? doubt();
    this.exports.set('default', { local: undefined, fixed: true });
    this.#replace(start, start + words.length, `;exports.default =${words.replace(/[^\n]+/g, '')}`);
  }

  #named(start, [words, isDefault, kind, name]) {
    if (name === undefined && isDefault === undefined) doubt();
    const local = name ?? UNNAMED;
    this.exports.set(isDefault ? 'default' : local, { local, fixed: kind === 'class' });
    const begins = words.indexOf(kind, 'export'.length);
    const kept = ended(words.slice(0, begins)) + words.slice(begins);
    this.#replace(start, start + words.length, name === undefined ? `${kept} ${UNNAMED} ` : kept);
  }

  #drop(start, statement) {
    this.#replace(start, start + statement.length, ended(statement));
  }

  #replace(start, end, text) {
    this.code += this.#text.slice(this.#copied, start) + text;
    this.#copied = end;
  }
}

/** The names that a `const` or the like declares, which is read from behind that word. */
function declaredNames(text, from) {
  const names = [];
  const take = (at) => {
    const one = matches(DECLARED, text, at);
    if (one) return names.push(one[1]);
    const pattern = matches(FLAT_PATTERN, text, at);
    if (pattern) names.push(...partsOf(pattern[1]).map((part) => /([^\s:.]+)$/.exec(part)?.[1] ?? doubt()));
    return pattern !== null;
  };
  if (!take(from)) doubt();
  scan(text, from, OF_DECLARATION, (_, end, reader) => {
    if (reader.open.length > 0) return false;
    // A comma of another statement, behind a line without a semicolon, is before something that is no declaration.
    if (text[end - 1] === ',') take(end);
    return text[end - 1] !== ',';
  });
  return names;
}

/** `a, b as c` as pairs. */
function namesIn(list) {
  return partsOf(list).map((part) => {
    const [, , name, , as = name] = /^(['"]?)([^\s'"]+)\1(?:\s+as\s+(['"]?)([^\s'"]+)\3)?$/.exec(part) ?? doubt();
    return [name, as];
  });
}

function partsOf(list) {
  const bare = list.includes('/') ? list.replace(/\/\*[^]*?\*\/|\/\/[^\n]*/g, ' ') : list;
  return bare.split(',').map((part) => part.trim()).filter((part) => part !== '');
}

function matches(pattern, text, at) {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

function isPartOfName(text, start, end) {
  return isOfName(text.charCodeAt(end)) || (start > 0 && (isOfName(text.charCodeAt(start - 1)) || '#@\\'.includes(text[start - 1])));
}

/** Nothing, in the same lines and columns. */
const blank = (text) => text.replace(/[^\n]/g, ' ');
/** The same with a semicolon: the line before may have none, and the next begin with a bracket. */
const ended = (text) => `;${blank(text.slice(1))}`;

function doubt() {
  throw DOUBT;
}
