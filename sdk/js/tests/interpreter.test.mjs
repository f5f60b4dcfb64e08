// The interpreter's own code, run by the JavaScript of this machine: what authors see of it, without a sandbox.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as interpreter from '../../../plugins/interpreters/js/src/interpreter.js';

const bytes = (text) => new TextEncoder().encode(text);
const load = (text, more = {}) =>
  interpreter.load('a.js', Object.entries({ 'a.js': text, ...more }).map(([path, content]) => ({ path, content: bytes(content) })));

async function call(text, input = {}, more = {}) {
  load(text, more);
  const given = { arguments: JSON.stringify(input), body: undefined, idempotencyKey: '', attempt: 1 };
  return JSON.parse((await interpreter.call(given)).output);
}

async function failure(text) {
  try {
    await call(text);
  } catch (error) {
    assert.deepEqual(Object.values(error).map((value) => typeof value), ['string', 'string', 'boolean'], text);
    return error;
  }
  throw new Error(`it did not fail: ${text}`);
}

test('what a plugin answers is JSON, at once or later', async () => {
  assert.deepEqual(await call('exports.call = (input) => ({ n: input.n + 1 });', { n: 1 }), { n: 2 });
  assert.equal(await call('exports.call = async () => new Promise((done) => setTimeout(() => setTimeout(done, 1, 7), 1));'), 7);
});

test('a promise that nothing settles is told', async () => {
  assert.equal((await failure('exports.call = () => new Promise(() => {});')).code, 'never_settles');
  const timer = 'exports.call = () => { setTimeout(() => {}, 1); return new Promise(() => {}); };';
  assert.equal((await failure(timer)).code, 'never_settles');
});

test('whatever is thrown is a failure', async () => {
  for (const thrown of [
    '{ toString() { throw 1; } }',
    'Object.create(null)',
    'Object.assign(new Error("x"), { stack: 5 })',
    'undefined',
    'Symbol("x")',
    'new Proxy({}, { getPrototypeOf() { throw 1; } })',
    'Object.assign(new Error("x"), { cause: { toString() { throw 1; } } })',
  ]) {
    assert.equal((await failure(`exports.call = () => { throw ${thrown}; };`)).code, 'exception', thrown);
  }
  const own = await failure("const { Failure } = require('noetl'); exports.call = () => { throw new Failure(5, null, null); };");
  assert.deepEqual([own.code, own.message, own.retryable], ['5', '', false]);
});

test('what cannot be an answer is refused', async () => {
  for (const answer of ['{ toJSON() { throw null; } }', '1n', "new (require('noetl').Response)({}, 5)", "new (require('noetl').Response)(1, undefined, 5)"]) {
    assert.equal((await failure(`exports.call = () => (${answer});`)).code, 'invalid_output', answer);
  }
});

test('a chain of causes is told, and text that is not JavaScript with its place', async () => {
  const { message } = await failure("exports.call = () => { throw new Error('outer', { cause: new TypeError('inner') }); };");
  assert.match(message, /^Error: outer[\s\S]*Caused by: TypeError: inner/);
  const typed = (text) => interpreter.load('a.ts', [{ path: 'a.ts', content: bytes(text) }]);
  assert.throws(() => typed('\n  SYNTAX'), ({ message }) => message === 'SyntaxError: Unexpected token\n    at a.ts:2:3');
  assert.throws(() => typed('  SYNTAX'), ({ message }) => message.endsWith('at a.ts:1:3'));
});

test('columns of the first line are those of the author', async () => {
  const front = '(function (exports, require, module, __import) {'.length;
  const { message } = await failure(
    `exports.call = () => { throw Object.assign(new Error('x'), { stack: 'call@a.js:1:${front + 5}\\nb@a.js:2:9' }); };`,
  );
  assert.match(message, /at call \(a\.js:1:5\)\n {4}at b \(a\.js:2:9\)/);
});

test('a missing library says where it goes, and odd files how to mend them', () => {
  assert.throws(() => load("require('lodash');"), ({ message }) => message.includes('vendor/lodash'));
  assert.throws(() => load("require('./x.json');", { 'x.json': '{' }), ({ message }) => message.includes('x.json is not JSON'));
  const latin = [{ path: 'a.js', content: new Uint8Array([0x2f, 0x2f, 0xe9]) }];
  assert.throws(() => interpreter.load('a.js', latin), ({ message }) => message.includes('save it as UTF-8'));
  interpreter.load('a.js', [{ path: 'a.js', content: bytes('\ufeffexports.call = () => 1;') }]);
});

test('a function that is all a file exports is what is called', async () => {
  assert.equal(await call('module.exports = (input) => input.n + 1;', { n: 1 }), 2);
  assert.equal(await call('module.exports = () => 1; module.exports.call = () => 2;'), 2);
  assert.equal(await call('module.exports = new (class { call() { return 3; } })();'), 3);
});

test('a plugin without a function is not loaded and told what to write', async () => {
  for (const text of ['', 'exports.cal = () => 1;', 'exports.call = 5;', 'module.exports = null;']) {
    assert.throws(() => load(text), ({ code, message }) => code === 'no_function' && message.startsWith('a.js exports no function'), text);
  }
  assert.match((await failure('exports.run = (data) => data;')).message, /`transform`/);
});

test('a library begins where its package.json says', async () => {
  const one = 'module.exports = 1;';
  const about = (fields) => ({ 'vendor/lib/package.json': JSON.stringify(fields) });
  for (const [name, fields, file] of [
    ['lib', { main: 'lib/a' }, 'lib/a.js'],
    ['lib', { main: './dist' }, 'dist/index.js'],
    ['lib', { main: './dist/' }, 'dist/index.js'],
    ['lib', { main: 'gone.js' }, 'index.js'],
    ['lib', { main: 'a.js', module: 'b.mjs' }, 'a.js'],
    ['lib', { exports: './a.js' }, 'a.js'],
    ['lib', { exports: { '.': './a.js' }, main: 'b.js' }, 'a.js'],
    ['lib', { exports: { import: './a.mjs', require: './a.cjs' } }, 'a.cjs'],
    ['lib', { exports: { '.': { types: './a.d.ts', import: './a.mjs' } } }, 'a.mjs'],
    ['lib', { exports: { '.': { node: './n.js', browser: { default: './b.js' } } } }, 'b.js'],
    ['lib', { exports: { '.': ['./gone:x', './a.js'] }, main: 'a.js' }, 'a.js'],
    ['lib/sub', { exports: { '.': './a.js', './sub': { default: './lib/sub.js' } } }, 'lib/sub.js'],
    ['lib/x/y', { exports: { './*': './lib/*.js', './x/*': './deep/*/index.js' } }, 'deep/y/index.js'],
    ['lib/plain', { exports: './a.js' }, 'plain.js'],
    ['lib/sub', { main: 'a.js' }, 'sub/index.js'],
  ]) {
    assert.equal(await call(`const one = require('${name}'); exports.call = () => one;`, {}, { ...about(fields), [`vendor/lib/${file}`]: one }), 1, file);
  }
});

test('libraries have names with a scope, libraries of their own, and folders within', async () => {
  const more = {
    'vendor/@scope/lib/package.json': '{"exports": {"./sub": "./s.js"}}',
    'vendor/@scope/lib/s.js': "module.exports = require('dep') + require('./inner');",
    'vendor/@scope/lib/node_modules/dep/index.js': 'module.exports = 1;',
    'vendor/dep/index.js': 'module.exports = 10;',
    'vendor/@scope/lib/inner/package.json': '{"main": "../two"}',
    'vendor/@scope/lib/two.js': 'module.exports = 2;',
    'vendor/node_modules/installed/index.js': 'module.exports = 100;',
  };
  const text = "const [a, b, c] = [require('@scope/lib/sub'), require('dep'), require('installed')]; exports.call = () => [a, b, c];";
  assert.deepEqual(await call(text, {}, more), [3, 10, 100]);
});

test('what is of Node.js is told as that', () => {
  for (const name of ['node:fs', 'fs', 'fs/promises']) {
    assert.throws(() => load(`require('${name}');`), ({ message }) => message.includes('module of Node.js') && !message.includes('vendor'));
  }
});

test('a name that begins with # is one of the nearest package.json', async () => {
  const one = 'module.exports = 1;';
  for (const [name, imports, file] of [
    ['#a', { '#a': './src/a.js' }, 'src/a.js'],
    ['#a', { '#a': { node: './n.js', default: './b.js' } }, 'b.js'],
    ['#in/a', { '#in/*': './in/*.js' }, 'in/a.js'],
    ['#a', { '#a': { browser: 'dep', node: './n.js' } }, 'node_modules/dep/index.js'],
  ]) {
    const more = {
      'vendor/lib/package.json': JSON.stringify({ main: 'deep/er/main.js', imports }),
      'vendor/lib/deep/er/main.js': `module.exports = require('${name}');`,
      [`vendor/lib/${file}`]: one,
      'package.json': '{"imports": {"#a": "./no.js"}}',
    };
    assert.equal(await call("const one = require('lib'); exports.call = () => one;", {}, more), 1, file);
  }
  const own = { 'package.json': '{"imports": {"#a": "./src/a.js"}}', 'src/a.js': one };
  assert.equal(await call("const one = require('#a'); exports.call = () => one;", {}, own), 1);
  assert.throws(() => load("require('#b');", own), ({ message }) => message.includes('`imports`') && !message.includes('vendor'));
});
