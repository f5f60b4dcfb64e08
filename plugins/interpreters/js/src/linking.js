// What modules give each other.
//
// What is imported is given to a module once, as a value; that is right only for what stays as it is. What a module exports
// does so when the module has run and nothing in its text assigns to it again. Where a text only looks as if, it counts as
// changing: whoever imports that is compiled the long way, and right all the same.

import { SHOWING } from './compiling.js';

/** What a name stands for in what a module exports; `*` is all of it. CommonJS has no default but itself. */
export function valueOf(exports, name) {
  if (name === '*') return exports?.__esModule ? exports : { ...exports, default: exports };
  if (name === 'default' && !exports?.__esModule) return exports;
  return exports?.[name];
}

/** Runs what a module imports, in its order, and gives what it names of that; undefined where something may change. */
export function link(found, exports, from) {
  const { imports, passed, stars } = found;
  const isExporting = found.exports.size + passed.size + stars.length > 0;
  // Before anything runs: a module in a circle asks for it.
  if (isExporting) Object.defineProperty(exports, '__esModule', { value: true });
  const given = [];
  for (const { from: name, names, whole } of imports) {
    const unit = from(name);
    const theirs = unit.module.exports;
    if (names.some(([key]) => !unit.isSteady(key))) return undefined;
    given.push(...names.map(([key, local]) => [local, valueOf(theirs, key)]));
    // What all of an ES module is sees its changes.
    if (whole !== undefined && !theirs?.__esModule && !unit.isSteady('default')) return undefined;
    if (whole !== undefined) given.push([whole, valueOf(theirs, '*')]);
  }
  const show = (name, get) => Object.defineProperty(exports, name, { enumerable: true, configurable: true, get });
  const own = [...found.exports].filter(([, { local }]) => local !== undefined).map(([name, { local }]) => [name, local]);
  for (const [as, { from: name, key }] of passed) {
    const unit = from(name);
    show(as, () => valueOf(unit.module.exports, key));
  }
  for (const name of stars) {
    const theirs = from(name).module.exports;
    const isNew = (key) => key !== 'default' && key !== '__esModule' && !found.exports.has(key) && !passed.has(key);
    Object.keys(Object(theirs)).filter(isNew).forEach((key) => show(key, () => theirs[key]));
  }
  if (own.length > 0) given.push([SHOWING, (shown) => Object.entries(shown).forEach(([name, get]) => show(name, get))]);
  return { given, shown: own };
}

/** Whether what a module that has run exports under a name may be something else later. */
export function mayChange(name, text, found, from) {
  // Without statements, what is exported under another name than its own is not known.
  const isRenamed = () => new RegExp(`\\bas\\s+${escaped(name)}(?![\\w$])`).test(text);
  if (found === undefined) return isRenamed() || (name !== 'default' && isAssigned(text, name));
  const own = found.exports.get(name);
  if (own !== undefined) return !own.fixed && isAssigned(text, own.local);
  const other = found.passed.get(name);
  if (other !== undefined) return other.key !== '*' && !from(other.from).isSteady(other.key);
  return found.stars.some((star) => !from(star).isSteady(name));
}

/** Whether a text assigns to a variable but where it declares it. */
function isAssigned(text, name) {
  const one = `(?<![\\w$.])${escaped(name)}(?![\\w$])`;
  const sign = '(?:(?:[-+*/%&|^?]|<<|>{2,3})*=(?![=>])|\\+\\+|--)';
  const sets = new RegExp(`(?:\\b(let|var|const)\\s+|(,)\\s*)?(?:${one}\\s*${sign}|(?:\\+\\+|--)\\s*${one})`, 'g');
  let [declared, behindComma] = [0, 0];
  for (const [, keyword, comma] of text.matchAll(sets)) {
    if (keyword === undefined && comma === undefined) return true;
    if (comma !== undefined) behindComma += 1;
    else if (keyword !== 'const') declared += 1;
  }
  // Behind a comma it is declared or assigned: declared, where there is no other place that may do that.
  const isBare = () => new RegExp(`(?:\\b(?:let|var)\\s+|,\\s*)${one}\\s*(?:[,;\\n]|$)`).test(text);
  if (behindComma > 0 && (declared + behindComma > 1 || isBare())) return true;
  // Taken apart into it, or counted through. A bracket behind a name is an index.
  const before = '(?:(?<![\\w$\\])]\\s*)\\[|[{,:(.])\\s*';
  return new RegExp(`${before}${one}(?:\\s*(?:[,\\]}][^;\\n]*)?[\\]}]\\s*=(?![=>])|\\s+(?:of|in)\\s)`).test(text);
}

const escaped = (name) => name.replaceAll('$', '\\$');
