// Code of steps: the conventions of playbooks, and what is told when it breaks.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { stored } from './fakes/files.mjs';
import * as host from './fakes/http-client.mjs';
import { Payload as HostPayload } from './fakes/payload.mjs';
import { script } from '../noetl.js';

const bytes = (text) => new TextEncoder().encode(text);
const context = { execution_id: '77', step: 'clean', attempt: 2 };

async function answer(code, input, more = {}) {
  const quiet = { log() {}, info() {}, debug() {}, warn() {}, error() {} };
  const before = globalThis.console;
  globalThis.console = quiet;
  try {
    return JSON.parse((await script.run({ code, input, context, ...more })).encoded);
  } finally {
    globalThis.console = before;
    // Left by code that does not declare it; a sandbox is there for one call.
    delete globalThis.result;
  }
}

test('the value is what the convention says', async () => {
  for (const [code, input, wanted] of [
    ['return { n: n + 1 };', { n: 1 }, { n: 2 }],
    ['result = n + 1;', { n: 1 }, 2],
    ['const result = n + 1; // done', { n: 1 }, 2],
    ['const n = input.n + 1;\nreturn n;', { n: 1 }, 2],
    ['function main({ n }) { return [n]; }', { n: 1 }, [1]],
    ['const main = async ({ n }) => n * 2;', { n: 4 }, 8],
    ['return await Promise.resolve(args.n);', { n: 3 }, 3],
    ["return [context.step, context.execution_id, input['not-a-name'], typeof await1];", { 'not-a-name': 5, class: 1, await1: 2 }, ['clean', '77', 5, 'number']],
    ['return [NaN, -Infinity, 10n, 2n ** 70n, new Set([1]), new Map([["a", 1]])];', {}, ['NaN', '-Infinity', 10, String(2n ** 70n), [1], { a: 1 }]],
    ['return typeof noetl.http.get;', {}, 'function'],
    ["return noetl.secrets.placeholder('crm', 'token');", {}, '<crm.token>'],
    ['return [execution_id, step, attempt, input_data.n, variables];', { n: 1 }, ['77', 'clean', 2, 1, {}]],
    ['const step = input.step;\nreturn [step, execution_id];', { step: 's', execution_id: 'own' }, ['s', 'own']],
    ['return 0;', {}, 0],
  ]) {
    assert.deepEqual(await answer(code, input), wanted, code);
  }
});

test('what is in a payload is no empty list', async () => {
  const table = { row_count: 9, columns: ['n'], affected_rows: 0, _ref: 'noetl://payload/a' };
  const page = { status_code: 200, headers: {}, _ref: 'noetl://payload/b' };
  const given = () => structuredClone({ res: { ...table, command_0: table }, page, whole: { ...table, rows: [1] } });
  for (const code of ['res.rows ?? []', 'res.command_0.rows', 'page.data', 'input.page.body']) {
    const { _failure } = await answer(`return ${code};`, given());
    assert.equal(_failure.code, 'elsewhere', code);
    assert.match(_failure.message, /`_ref`/);
  }
  const rest = 'return [res.row_count, res.other, "rows" in res, whole.rows, JSON.parse(JSON.stringify(res))._ref];';
  assert.deepEqual(await answer(rest, given()), [9, null, false, [1], 'noetl://payload/a']);
});

test('nothing given is what was written to the console', async () => {
  const said = await answer('console.log("one", { a: 1 });\nconsole.error("two");');
  assert.deepEqual(said, { stdout: 'one {"a":1}\n', stderr: 'two\n' });
});

test('an error is told with the line of its author', async () => {
  const said = await answer('console.log("before");\nfunction inner() {\n  null.x;\n}\ninner();');
  assert.equal(said._failure.code, 'javascript_error');
  assert.match(said._failure.message, /^TypeError: .* \(code, line 3\)$/);
  assert.deepEqual([said.js.line, said.stdout], [3, 'before\n']);
  assert.match(said.js.stack, /code:3:\d+\n {4}at code:5:/);
  const own = await answer("throw new noetl.Failure('not_found', 'gone', { retryable: true });");
  assert.deepEqual([own._failure.code, own._failure.retryable], ['not_found', true]);
  assert.equal((await answer('return (;'))._failure.code, 'javascript_error');
  assert.equal((await answer("throw 'words';"))._failure.message, 'words');
});

test('a script comes from where the step says', async () => {
  stored.set('a.js', bytes('return input.n + 1;'));
  assert.equal(await answer(undefined, { n: 1 }, { script: { uri: 'a.js', source: { type: 'file' } } }), 2);
  assert.equal(await answer(undefined, {}, { script: { source: { type: 'inline', code: 'return 3' } } }), 3);
  assert.equal(await answer(undefined, { n: 1 }, { script: ' a.js' }), 2);
  assert.equal(await answer(undefined, {}, { script: 'return 5' }), 5);
  host.answers.push({ status: 200, headers: [], body: new HostPayload(bytes('return 4')) });
  const remote = { uri: 'a.js', source: { type: 'http', endpoint: 'https://example.com/' } };
  assert.equal(await answer(undefined, {}, { script: remote }), 4);
  await assert.rejects(script.run({ script: { uri: 'b.js', source: { type: 'file' } } }), { code: 'not_found' });
  await assert.rejects(script.run({ script: { uri: 'b.js', source: { type: 's3' } } }), { code: 'invalid_input' });
  await assert.rejects(script.run({}), { code: 'invalid_input' });
  await assert.rejects(script.run({ code: '', libs: ['x'] }), { code: 'invalid_input' });
});
