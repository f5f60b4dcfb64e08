// `fetch` and the signals that end it, against a host that is made of lists.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { HostError } from './fakes/error.mjs';
import * as host from './fakes/http-client.mjs';
import { Payload as HostPayload } from './fakes/payload.mjs';
import { install } from '../../../plugins/interpreters/js/src/aborting.js';
import { fetch } from '../../../plugins/interpreters/js/src/fetch.js';

install();

const URL_OF_TESTS = 'https://example.com/x';
const bytes = (text) => new TextEncoder().encode(text);
const answers = (status, text = '') => host.answers.push({ status, headers: [['X-A', 'b']], body: new HostPayload(bytes(text)) });

test('fetch goes by the host', async () => {
  answers(201, '{"n":1}');
  const answer = await fetch(URL_OF_TESTS, { method: 'post', body: 'hi', headers: { A: 'b' } });
  assert.deepEqual([answer.ok, answer.status, answer.headers.get('x-a'), (await answer.json()).n], [true, 201, 'b', 1]);
  const sent = host.sent.pop();
  assert.deepEqual([sent.method, sent.url, sent.body.data, sent.timeoutMs], ['POST', URL_OF_TESTS, bytes('hi'), undefined]);
  assert.deepEqual(sent.headers, [['a', 'b'], ['content-type', 'text/plain;charset=UTF-8']]);
  await assert.rejects(fetch(5), TypeError);
});

test('a header that is there twice is sent with both values', async () => {
  answers(200);
  await fetch(URL_OF_TESTS, { headers: [['Accept', 'a/b'], ['accept', 'c/d'], ['x', 1]] });
  assert.deepEqual(host.sent.pop().headers, [['accept', 'a/b, c/d'], ['x', '1']]);
});

test('a redirect is an answer, or an error where that is asked for', async () => {
  for (const options of [{}, { redirect: 'manual' }]) {
    answers(302);
    assert.equal((await fetch(URL_OF_TESTS, options)).status, 302);
  }
  answers(302);
  await assert.rejects(fetch(URL_OF_TESTS, { redirect: 'error' }), { name: 'TypeError', message: /redirect/ });
  answers(304);
  assert.equal((await fetch(URL_OF_TESTS, { redirect: 'error' })).status, 304);
});

test('an option that cannot be kept is named, and nothing is sent', async () => {
  host.sent.length = 0;
  for (const [name, value] of Object.entries({ redirect: 'follow', integrity: 'sha256-x', cache: 'only-if-cached', agent: {}, dispatcher: {}, signal: {} })) {
    await assert.rejects(fetch(URL_OF_TESTS, { [name]: value }), { name: 'TypeError', message: new RegExp(`\`${name}\``) });
  }
  await assert.rejects(fetch(URL_OF_TESTS, { redirect: 'elsewhere' }), { message: /`error` or `manual`/ });
  assert.deepEqual(host.sent, []);
  answers(200);
  await fetch(URL_OF_TESTS, { mode: 'cors', credentials: 'omit', cache: 'no-store', keepalive: true, signal: null, integrity: '' });
});

test('the time of a signal is the time of the request', async () => {
  const never = new AbortController().signal;
  for (const signal of [AbortSignal.timeout(2_000), AbortSignal.any([never, AbortSignal.timeout(2_000), AbortSignal.timeout(3_000)])]) {
    answers(200);
    await fetch(URL_OF_TESTS, { signal });
    const { timeoutMs } = host.sent.pop();
    assert.ok(timeoutMs > 1_000 && timeoutMs <= 2_000, `${timeoutMs}`);
  }
  host.answers.push(new HostError('timeout'));
  await assert.rejects(fetch(URL_OF_TESTS, { signal: AbortSignal.timeout(2_000) }), { name: 'TimeoutError' });
  host.answers.push(new HostError('timeout'));
  await assert.rejects(fetch(URL_OF_TESTS, { signal: never }), { name: 'TypeError' });
  host.sent.length = 0;
  await assert.rejects(fetch(URL_OF_TESTS, { signal: AbortSignal.timeout(0) }), { name: 'TimeoutError' });
  await assert.rejects(fetch(URL_OF_TESTS, { signal: AbortSignal.abort() }), { name: 'AbortError' });
  await assert.rejects(fetch(URL_OF_TESTS, { signal: AbortSignal.any([AbortSignal.abort(new Error('mine'))]) }), { message: 'mine' });
  assert.deepEqual(host.sent, []);
});

test('a signal aborts when its time is over', async () => {
  const signal = AbortSignal.timeout(1);
  await new Promise((done) => signal.addEventListener('abort', done));
  assert.deepEqual([signal.aborted, signal.reason.name], [true, 'TimeoutError']);
  assert.throws(() => AbortSignal.timeout(-1), TypeError);
  const controller = new AbortController();
  const either = AbortSignal.any([controller.signal, AbortSignal.timeout(3_000)]);
  either.throwIfAborted();
  controller.abort(new Error('mine'));
  assert.throws(() => either.throwIfAborted(), { message: 'mine' });
});
