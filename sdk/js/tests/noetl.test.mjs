// The module a plugin imports, against a host that is made of lists. Run with `npm test` in `sdk/js`.

import assert from 'node:assert/strict';
import { beforeEach, test } from 'node:test';
import { HostError } from './fakes/error.mjs';
import * as host from './fakes/http-client.mjs';
import { values } from './fakes/kv.mjs';
import { lines } from './fakes/log.mjs';
import { stored } from './fakes/objects.mjs';
import { Payload as HostPayload } from './fakes/payload.mjs';
import { known } from './fakes/secrets.mjs';
import { Failure, clock, http, kv, log, objects, payload, secrets } from '../noetl.js';

const bytes = (text) => new TextEncoder().encode(text);

beforeEach(() => [values, stored].forEach((map) => map.clear()));

test('what is put is there', () => {
  assert.equal(kv.get('a'), undefined);
  kv.put('a', 'text');
  kv.putJson('b', { n: 1 });
  assert.deepEqual(kv.get('a'), bytes('text'));
  assert.deepEqual(kv.getJson('b'), { n: 1 });
  assert.equal(kv.getJson('c', 7), 7);
  assert.equal(kv.compareAndSwap('a', 1n, 'new'), true);
  assert.equal(kv.compareAndSwap('a', 1n, 'newer'), false);
});

test('keys are read page by page', () => {
  ['p/3', 'p/1', 'q', 'p/2', 'p/4', 'p/5'].forEach((key) => kv.put(key, 'x'));
  assert.deepEqual([...kv.keys('p/')], ['p/1', 'p/2', 'p/3', 'p/4', 'p/5']);
});

test('errors of the host are failures with a code', () => {
  assert.throws(() => kv.put('', 'x'), (error) => error instanceof Failure && error.code === 'invalid_key' && !error.retryable);
  assert.throws(() => kv.put('a', new Uint8Array(1 << 21)), { code: 'too_large' });
});

test('objects are named payloads', () => {
  ['a', 'b', 'c'].forEach((key) => objects.put(key, payload.of(key, 'text/plain')));
  assert.deepEqual([...objects.entries()].map(({ key, size }) => [key, size]), [['a', 1], ['b', 1], ['c', 1]]);
  assert.equal(objects.open('b').text(), 'b');
  assert.equal(objects.open('d'), undefined);
});

test('a payload is put together without reading, and says when it was given away', () => {
  const first = payload.of('xyz');
  const writer = new payload.Writer('text/plain');
  writer.write('a');
  writer.splice(first, 1);
  assert.equal(writer.finish().text(), 'ayz');
  assert.deepEqual([...first.chunks(2)], [bytes('xy'), bytes('z')]);
  first.give();
  assert.throws(() => first.read(), TypeError);
});

test('json is sent with its type', () => {
  host.answers.push({ status: 200, headers: [['A', 'b']], body: new HostPayload(bytes('{"n":1}')) });
  const answer = http.post('https://example.com', { json: { q: 1 }, timeout: 500 });
  const sent = host.sent.pop();
  assert.equal(sent.timeoutMs, 500);
  assert.deepEqual(sent.body.data, bytes('{"q":1}'));
  assert.deepEqual(sent.headers, [['content-type', 'application/json']]);
  assert.deepEqual(answer.ok().json(), { n: 1 });
  assert.equal(answer.header('a'), 'b');
});

test('a status is a failure only when asked, and no answer can be tried again', () => {
  host.answers.push({ status: 503, headers: [], body: new HostPayload(bytes('later')) }, new HostError('timeout'));
  const answer = http.get('https://example.com');
  assert.throws(() => answer.ok(), { code: 'http_status', retryable: true });
  assert.throws(() => http.get('https://example.com'), { code: 'timeout', retryable: true });
});

test('lines have fields and time is in milliseconds', () => {
  log.warn('slow', { ms: 12 });
  assert.deepEqual(lines.pop(), ['warn', 'slow', [['ms', '12']]]);
  assert.equal(clock.now(), 1_700_000_000_500);
  assert.equal(clock.monotonic(), 2);
});

test('what stands for a secret is what the host says', () => {
  known.set('crm', [['authorization', 'Bearer <crm.token>']]);
  assert.equal(secrets.placeholder('crm', 'token'), '<crm.token>');
  assert.deepEqual(secrets.headers('crm'), { authorization: 'Bearer <crm.token>' });
  assert.deepEqual(secrets.describe('crm'), { kind: 'bearer', fields: { host: 'h' } });
  assert.throws(() => secrets.headers('nobody'), { code: 'unknown_credential', retryable: false, message: /nobody/ });
});
