// `fetch` over the host's HTTP client: a sandbox has no sockets, and the engine's own would end the call.
//
// What most programs use of it: a method, headers, a body that is text or bytes, and the answer's status, headers and
// body. Redirects are not followed, as the host follows none.

import { http, Failure } from 'noetl-sdk';

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

/** Headers are an object, pairs, or something that has pairs. */
function fieldsOf(headers) {
  if (headers === undefined || headers === null) return {};
  const pairs = typeof headers[Symbol.iterator] === 'function' ? [...headers] : Object.entries(headers);
  return Object.fromEntries(pairs.map(([name, value]) => [String(name).toLowerCase(), String(value)]));
}

export async function fetch(what, options = {}) {
  if (typeof what !== 'string' && !(what instanceof URL)) {
    throw new TypeError('`fetch` takes an address as text or URL; use `noetl.http.request` for more');
  }
  const { method = 'GET', headers, body } = options ?? {};
  const [given, type] = sent(body);
  const fields = fieldsOf(headers);
  if (type !== undefined && !('content-type' in fields)) fields['content-type'] = type;
  const url = String(what);
  try {
    return new Answer(url, http.request(String(method).toUpperCase(), url, { headers: fields, body: given }));
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new TypeError(`fetch of ${url} failed: ${error.message || error.code}`, { cause: error });
  }
}
