// Files as modules without a parser: what is found in their text, and what they give each other.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { parsed } from './fakes/sucrase.mjs';
import { Program } from '../../../plugins/interpreters/js/src/program.js';
import { statementsOf } from '../../../plugins/interpreters/js/src/statements.js';

const bytes = (text) => new TextEncoder().encode(text);
const start = (files) => new Program(Object.entries(files).map(([path, text]) => ({ path, content: bytes(text) }))).start('a.js');

beforeEach(() => parsed.splice(0));

test('words in strings, comments, templates and regular expressions are no statements', () => {
  for (const text of [
    "const a = 'export const b = 1', c = \"import d from 'e'\", f = '\\\\', g = 'it\\'s export';",
    "// export default 1\n/* import a from 'b' */ x = 1; // it's",
    '`export default ${`import ${{ a: 1 }} ${/`import/}`} \\` \\${ export`;',
    'const a = b / c; const d = /import a from "/g, e = /[/"\'`]import/;',
    'if (a) /export "/.test(b);\nfunction f() {}\n/import "/.test(a);',
    'const a = { export: 1, import: 2 }; a.export = a?.import; a\n  .import(1); $import = export_;',
    'a++ / 2; b[1] / 3; (c) / 4; `x` / 5; return_ / "import";',
    '// a line that ends with spaces.   \r\nconst a = "export";',
  ]) {
    const found = statementsOf(text);
    assert.deepEqual([found?.isModule, found?.code], [false, text], text);
  }
});

test('statements are taken out within their lines and columns', () => {
  const text = "import a, {\n  b as c, // it's\n} from 'x'; import * as d from 'y'\nimport 'z'\n(0, a)\nexport const e = c / d, { f, g: h, ...i } = a\nexport async function* j() {}";
  const found = statementsOf(text);
  assert.deepEqual(found.imports.map(({ from, names, whole }) => [from, names, whole]), [
    ['x', [['default', 'a'], ['b', 'c']], undefined],
    ['y', [], 'd'],
    ['z', [], undefined],
  ]);
  assert.deepEqual([...found.exports.keys()], ['e', 'f', 'h', 'i', 'j']);
  const ends = (code) => code.split('\n').map((line) => line.length);
  assert.deepEqual(ends(found.code), ends(text));
  assert.equal(found.code.split('\n').at(-1).indexOf('async function'), 'export '.length);
});

test('what only a parser can tell is left to it', () => {
  for (const text of [
    'export const { a: { b } } = c;',
    "import /* odd */ a from 'b';",
    'export default /* odd */ function f() {}',
    'const a = { import(b) { return b; } };',
    'class A { static import(b) {} }',
    "export const a = 'open;",
    'export const a = (1;',
    'switch (x) { case 1: {} /export/.test(y); }',
  ]) {
    assert.equal(statementsOf(text), undefined, text);
  }
});

test('modules give each other what they name, without a parser', () => {
  const exports = start({
    'a.js':
      "import d, { one, two as second } from './b.mjs';\nimport * as all from './b.mjs';\nimport f, { p } from './c.cjs';\nimport * as c from './c.cjs';\n" +
      "import module from './d.json';\nexport { three, default as four } from './b.mjs';\nexport * from './b.mjs';\nexport * as b from './b.mjs';\n" +
      'export default [d(), one, second, all.one, f(), p, c.p, c.default(), module.n];\nexport const five = () => import(`./b.mjs`);',
    'b.mjs': "export const one = 1;\nlet two = 2;\nexport { two, three };\nfunction three() { return 3; }\nexport default function () { return 'd' + typeof this; }",
    'c.cjs': 'module.exports = () => 7;\nmodule.exports.p = 8;',
    'd.json': '{"n": 9}',
  });
  assert.deepEqual(exports.default, ['dundefined', 1, 2, 1, 7, 8, 8, 7, 9]);
  assert.deepEqual(Object.keys(exports).sort(), ['b', 'default', 'five', 'four', 'one', 'three', 'two']);
  const { four } = exports;
  assert.deepEqual([exports.three(), four(), exports.b.one], [3, 'dundefined', 1]);
  assert.deepEqual(parsed, []);
  return exports.five().then((b) => assert.equal(b.one, 1));
});

test('what may change is asked for where it is used', () => {
  const importing = (b, name = 'n') => {
    parsed.splice(0);
    // The parser of tests leaves statements as they are, which no function takes.
    assert.throws(() => start({ 'a.js': `import { ${name} } from './b.js';`, 'b.js': b }), { name: 'SyntaxError' });
    assert.deepEqual(parsed, ['a.js'], b);
  };
  importing('export let n = 1; export const up = () => { n += 1; };');
  importing('let n; export { n }; export const set = (to) => { n = to; };');
  importing('var m = 1, n = 2; export { n as k }; export const up = () => n++;', 'k');
  importing('export let n = 1; export const set = (list) => { [n] = list; };');
  importing('let a, n; export { n }; export const set = () => (a = 1, n = 2);');
  importing('export function n() {} export const set = () => { n = null; };');
  const steady = (b) => {
    parsed.splice(0);
    assert.equal(start({ 'a.js': "import { n } from './b.js'; export const m = n;", 'b.js': b }).m, 1, b);
    assert.deepEqual(parsed, [], b);
  };
  steady('const other = {}; export let n = 1; if (n === 2 || n >= 3) other.n = n;');
  steady('var m = 0, n = 1; export { n };');
  steady('const c = 1; const other = {}; other[c] = 2; export { c as n };');
});

test('a circle sees all of a module, and a name of it only through the parser', () => {
  const { two } = start({ 'a.js': "export { two } from './b.js'; export const one = 1;", 'b.js': "import * as a from './a.js'; export const two = () => a.one + 1;" });
  assert.equal(two(), 2);
  assert.deepEqual(parsed, []);
  assert.throws(() => start({ 'a.js': "import './b.js'; export const one = 1;", 'b.js': "import { one } from './a.js';" }), SyntaxError);
  assert.deepEqual(parsed, ['b.js']);
});

test('CommonJS is what it is in Node.js', () => {
  const exports = start({ 'a.js': '#!/usr/bin/env node\nexports.self = this === exports; exports.strict = (function () { return !this; })(); exports.words = "import export";' });
  assert.deepEqual(exports, { self: true, strict: false, words: 'import export' });
  assert.deepEqual(parsed, []);
});
