// `fetch` over the host's HTTP client: a sandbox has no sockets, and the engine's own would end the call.
//
// What most programs use of it: a method, headers, a body that is text or bytes, a signal that ends it in time, and the
// answer's status, headers and body. Redirects are not followed, as the host follows none. An option that asks for
// something else is refused: whoever writes it relies on it. One about cookies, caches or pages is as good as kept, as
// there are none.

import { http, Failure } from 'noetl-sdk';
import { timedOut, timeLeft } from './aborting.js';

const decoder = new TextDecoder();

class Headers {
  #fields;

  constructor(fields) {
    this.#fields = fields.map(([name, value]) => [name.toLowerCase(), value]);
  }

  get(name) {
    const found = this.#fields.filter(([key]) => key === String(name).toLowerCase());
    return found.length > 0 ? found.map(([, value]) => value).join(', ') : null;
  }

  has(name) {
    return this.get(name) !== null;
  }

  forEach(work) {
    this.#fields.forEach(([name, value]) => work(value, name, this));
  }

  entries() {
    return this.#fields.values();
  }

  [Symbol.iterator]() {
    return this.entries();
  }
}

class Answer {
  #body;
  #read = false;

  constructor(url, { status, headers, body }) {
    this.url = url;
    this.status = status;
    this.ok = status >= 200 && status < 300;
    this.redirected = false;
    this.statusText = '';
    this.headers = new Headers(headers);
    this.#body = body;
  }

  get bodyUsed() {
    return this.#read;
  }

  async bytes() {
    if (this.#read) throw new TypeError('the body was read already');
    this.#read = true;
    return this.#body.read();
  }

  async arrayBuffer() {
    return (await this.bytes()).buffer;
  }

  async text() {
    return decoder.decode(await this.bytes());
  }

  async json() {
    return JSON.parse(await this.text());
  }
}

/** The body and the type that goes with it. */
function sent(body) {
  if (body === undefined || body === null) return [undefined, undefined];
  if (typeof body === 'string') return [body, 'text/plain;charset=UTF-8'];
  if (body instanceof URLSearchParams) return [String(body), 'application/x-www-form-urlencoded;charset=UTF-8'];
  if (body instanceof ArrayBuffer) return [new Uint8Array(body), undefined];
  if (ArrayBuffer.isView(body)) return [new Uint8Array(body.buffer, body.byteOffset, body.byteLength), undefined];
  throw new TypeError('`fetch` takes a body that is text, bytes or URLSearchParams; use `noetl.http` for a payload');
}

/** Headers are an object, pairs, or something that has pairs. Of a name that is there twice both values are sent. */
function fieldsOf(headers) {
  if (headers === undefined || headers === null) return {};
  const pairs = typeof headers[Symbol.iterator] === 'function' ? [...headers] : Object.entries(headers);
  const fields = new Map();
  for (const [given, value] of pairs) {
    const name = String(given).toLowerCase();
    fields.set(name, fields.has(name) ? `${fields.get(name)}, ${value}` : String(value));
  }
  return Object.fromEntries(fields);
}

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/** Options that cannot be kept, and why. */
const REFUSED = [
  ['redirect', (given) => given === 'follow', 'the host follows no redirects: leave it out and read the header `location` of the answer'],
  ['redirect', (given) => given !== 'error' && given !== 'manual', 'it is `error` or `manual`'],
  ['signal', (given) => !(given instanceof AbortSignal), 'it is an AbortSignal'],
  ['integrity', (given) => given !== '', 'answers are not checked: compare a digest of the body'],
  ['cache', (given) => given === 'only-if-cached', 'there is no cache'],
  ['agent', () => true, 'a sandbox has no connections of its own'],
  ['dispatcher', () => true, 'a sandbox has no connections of its own'],
];

function checked(options) {
  for (const [name, isRefused, why] of REFUSED) {
    const given = options[name];
    if (given !== undefined && given !== null && isRefused(given)) {
      throw new TypeError(`\`fetch\` cannot keep the option \`${name}\`: ${why}`);
    }
  }
  return options;
}

/** How long a request may take; thrown is what a signal has aborted with. */
function timeOf(signal) {
  if (signal?.aborted) throw signal.reason;
  const left = signal ? timeLeft(signal) : undefined;
  if (left !== undefined && left <= 0) throw timedOut();
  return left;
}

export async function fetch(what, options = {}) {
  if (typeof what !== 'string' && !(what instanceof URL)) {
    throw new TypeError('`fetch` takes an address as text or URL; use `noetl.http.request` for more');
  }
  const { method = 'GET', headers, body, redirect, signal } = checked(options ?? {});
  const [given, type] = sent(body);
  const fields = fieldsOf(headers);
  if (type !== undefined && !('content-type' in fields)) fields['content-type'] = type;
  const url = String(what);
  const timeout = timeOf(signal);
  try {
    const answer = http.request(String(method).toUpperCase(), url, { headers: fields, body: given, timeout });
    if (redirect === 'error' && REDIRECTS.has(answer.status)) {
      throw new TypeError(`fetch of ${url} failed: it is redirected, and the option \`redirect\` is \`error\``);
    }
    return new Answer(url, answer);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    if (error.code === 'timeout' && timeout !== undefined) throw timedOut();
    throw new TypeError(`fetch of ${url} failed: ${error.message || error.code}`, { cause: error });
  }
}
