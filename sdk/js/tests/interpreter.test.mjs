// The interpreter's own code, run by the JavaScript of this machine: what authors see of it, without a sandbox.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import * as host from './fakes/http-client.mjs';
import { Payload as HostPayload } from './fakes/payload.mjs';
import * as interpreter from '../../../plugins/interpreters/js/src/interpreter.js';

const bytes = (text) => new TextEncoder().encode(text);
const load = (text, more = {}) =>
  interpreter.load('a.js', Object.entries({ 'a.js': text, ...more }).map(([path, content]) => ({ path, content: bytes(content) })));

async function call(text, input = {}) {
  load(text);
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
  assert.throws(() => load('\n  SYNTAX'), ({ message }) => message === 'SyntaxError: Unexpected token\n    at a.js:2:3');
  assert.throws(() => load('  SYNTAX'), ({ message }) => message.endsWith('at a.js:1:3'));
});

test('columns of the first line are those of the author', async () => {
  const front = '(function (exports, require, module) {"use strict";/**/'.length;
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

test('fetch goes by the host', async () => {
  host.answers.push({ status: 201, headers: [['X-A', 'b']], body: new HostPayload(bytes('{"n":1}')) });
  const text = `exports.call = async () => {
    const answer = await fetch('https://example.com/x', { method: 'post', body: 'hi', headers: { A: 'b' } });
    return [answer.ok, answer.status, answer.headers.get('x-a'), (await answer.json()).n];
  };`;
  assert.deepEqual(await call(text), [true, 201, 'b', 1]);
  const sent = host.sent.pop();
  assert.deepEqual([sent.method, sent.url, sent.body.data], ['POST', 'https://example.com/x', bytes('hi')]);
  assert.deepEqual(sent.headers, [['a', 'b'], ['content-type', 'text/plain;charset=UTF-8']]);
  assert.equal((await failure('exports.call = () => fetch(5);')).code, 'exception');
});
