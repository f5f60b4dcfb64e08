// What a plugin can ask of the host: one object a capability. A plugin may use those that its plugin.toml lists under
// `capabilities`; using another one ends the call with the fault `denied`, which no `catch` sees. What the host answers
// with an error is thrown as a Failure with a code of its own. The types are in noetl.d.ts.

import * as hostClock from 'noetl:clock/clock@0.1.0';
import * as hostFiles from 'noetl:files/files@0.1.0';
import * as hostHttp from 'noetl:http-client/http-client@0.1.0';
import * as hostKv from 'noetl:kv/kv@0.1.0';
import * as hostLog from 'noetl:log/log@0.1.0';
import * as hostMetrics from 'noetl:metrics/metrics@0.1.0';
import * as hostObjects from 'noetl:objects/objects@0.1.0';
import * as hostPayload from 'noetl:payload/payload@0.1.0';
import * as hostRandom from 'noetl:random/random@0.1.0';
import * as hostSecrets from 'noetl:secrets/secrets@0.1.0';
import { make } from './script.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();
const PIECE = 1 << 20;
const PAGE = 1_000;
const OCTETS = 'application/octet-stream';

/** Errors after which the same call may well succeed. */
const RETRYABLE = new Set(['unavailable', 'timeout', 'failed']);

/** A text of anything: asking for one is code of the author's, which may throw. */
export function textOf(value) {
  try {
    return String(value);
  } catch {
    return `[${typeof value} without a text]`;
  }
}

export class Failure extends Error {
  constructor(code, message = '', options = undefined) {
    super(textOf(message ?? ''));
    this.name = 'Failure';
    this.code = textOf(code);
    this.retryable = Boolean(options?.retryable);
  }
}

/** Calls a function of the host; an error of its own becomes a Failure. */
function ask(call) {
  try {
    return call();
  } catch (error) {
    const said = error?.payload;
    if (said?.tag === undefined) throw error;
    const code = said.tag.replaceAll('-', '_');
    const message = code === 'too_large' ? `${said.val} bytes are too many` : String(said.val ?? '');
    throw new Failure(code, message, { retryable: RETRYABLE.has(code) });
  }
}

const bytesOf = (data) => (typeof data === 'string' ? encoder.encode(data) : new Uint8Array(data));
const pairs = (fields) => Object.entries(fields ?? {}).map(([key, value]) => [key, textOf(value)]);

export class Payload {
  #handle;

  constructor(handle) {
    this.#handle = handle;
  }

  /** The host's own object. */
  get handle() {
    if (this.#handle === undefined) throw new TypeError('the payload was given away');
    return this.#handle;
  }

  /** The host's own object, for somebody who takes it. */
  give() {
    const handle = this.handle;
    this.#handle = undefined;
    return handle;
  }

  get size() {
    return Number(this.handle.size());
  }

  get mediaType() {
    return this.handle.mediaType();
  }

  get digest() {
    return this.handle.digest();
  }

  read(offset = 0, length = this.size - offset) {
    const end = Math.min(offset + length, this.size);
    const whole = new Uint8Array(Math.max(0, end - offset));
    for (let at = offset; at < end; ) {
      const piece = ask(() => this.handle.read(BigInt(at), Math.min(PIECE, end - at)));
      if (piece.length === 0) break;
      whole.set(piece, at - offset);
      at += piece.length;
    }
    return whole;
  }

  text() {
    return decoder.decode(this.read());
  }

  json() {
    return JSON.parse(this.text());
  }

  *chunks(size = PIECE) {
    for (let at = 0; at < this.size; at += size) yield this.read(at, size);
  }
}

class Writer {
  #writer;

  constructor(mediaType = OCTETS) {
    this.#writer = new hostPayload.Writer(mediaType);
  }

  write(data) {
    ask(() => this.#writer.write(bytesOf(data)));
  }

  splice(source, offset = 0, length = source.size - offset) {
    ask(() => this.#writer.splice(source.handle, BigInt(offset), BigInt(length)));
  }

  finish() {
    return new Payload(ask(() => hostPayload.Writer.finish(this.#writer)));
  }
}

export const payload = {
  Writer,
  of(data, mediaType = OCTETS) {
    const writer = new Writer(mediaType);
    writer.write(data);
    return writer.finish();
  },
  ofJson(value) {
    return payload.of(JSON.stringify(value), 'application/json');
  },
};

const write = (level) => (message, fields) => hostLog.write(level, textOf(message), pairs(fields));

export const log = {
  trace: write('trace'),
  debug: write('debug'),
  info: write('info'),
  warn: write('warn'),
  error: write('error'),
};

export const metrics = {
  count: (name, value = 1, labels) => ask(() => hostMetrics.counterAdd(name, pairs(labels), BigInt(value))),
  gauge: (name, value, labels) => ask(() => hostMetrics.gaugeSet(name, pairs(labels), value)),
};

export const clock = {
  /** Milliseconds, as `Date.now()`. */
  now: () => Number(hostClock.now() / 1_000n) / 1_000,
  monotonic: () => Number(hostClock.monotonic() / 1_000n) / 1_000,
};

export const random = {
  bytes: (length) => hostRandom.bytes(length),
  number: () => hostRandom.number(),
};

export const kv = {
  entry(key) {
    const found = ask(() => hostKv.get(key));
    return found && { value: found.value, version: found.version, json: () => JSON.parse(decoder.decode(found.value)) };
  },
  get: (key) => kv.entry(key)?.value,
  getJson: (key, otherwise) => kv.entry(key)?.json() ?? otherwise,
  put: (key, value) => ask(() => hostKv.put(key, bytesOf(value))),
  putJson: (key, value) => kv.put(key, JSON.stringify(value)),
  delete: (key) => ask(() => hostKv.delete(key)),
  compareAndSwap: (key, expected, value) => ask(() => hostKv.compareAndSwap(key, expected, bytesOf(value))),
  *keys(prefix = '') {
    let after;
    for (;;) {
      const page = ask(() => hostKv.listKeys(prefix, after, PAGE));
      if (page.length === 0) return;
      yield* page;
      after = page.at(-1);
    }
  },
};

const infoOf = ({ key, size, digest, mediaType }) => ({ key, size: Number(size), digest, mediaType });

export const objects = {
  open(key) {
    const found = ask(() => hostObjects.open(key));
    return found && new Payload(found);
  },
  put: (key, content) => infoOf(ask(() => hostObjects.put(key, content.handle))),
  delete: (key) => ask(() => hostObjects.delete(key)),
  *entries(prefix = '') {
    let after;
    for (;;) {
      const page = ask(() => hostObjects.listObjects(prefix, after, PAGE));
      if (page.length === 0) return;
      yield* page.map(infoOf);
      after = page.at(-1).key;
    }
  },
};

class HttpResponse {
  constructor({ status, headers, body }) {
    this.status = status;
    this.headers = headers;
    this.body = new Payload(body);
  }

  header(name) {
    return this.headers.find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1];
  }

  ok() {
    if (this.status >= 400) {
      const text = decoder.decode(this.body.read(0, 2_000));
      throw new Failure('http_status', `status ${this.status}: ${text}`, { retryable: this.status >= 500 });
    }
    return this;
  }

  text() {
    return this.body.text();
  }

  json() {
    return this.body.json();
  }
}

function request(method, url, { headers, body, json, timeout } = {}) {
  const fields = pairs(headers);
  let given = body;
  if (json !== undefined) {
    given = payload.ofJson(json);
    if (!fields.some(([name]) => name.toLowerCase() === 'content-type')) {
      fields.push(['content-type', 'application/json']);
    }
  } else if (given !== undefined && !(given instanceof Payload)) {
    given = payload.of(given);
  }
  const timeoutMs = timeout === undefined ? undefined : Math.max(1, Math.round(timeout));
  const sent = { method, url, headers: fields, body: given?.give(), timeoutMs };
  return new HttpResponse(ask(() => hostHttp.send(sent)));
}

export const http = {
  request,
  get: (url, options) => request('GET', url, options),
  post: (url, options) => request('POST', url, options),
  put: (url, options) => request('PUT', url, options),
  delete: (url, options) => request('DELETE', url, options),
};

/** As other languages call them. */
const CREDENTIAL_CODES = { unknown: 'unknown_credential', unsupported: 'unsupported_credential' };

function askWallet(call) {
  try {
    return ask(call);
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    throw new Failure(CREDENTIAL_CODES[error.code] ?? error.code, error.message, { retryable: error.retryable });
  }
}

/** Nothing of it is a secret: the host puts one in where a placeholder stands, when a request leaves. */
export const secrets = {
  placeholder: (alias, field) => hostSecrets.placeholder(textOf(alias), textOf(field)),
  headers: (alias) => Object.fromEntries(askWallet(() => hostSecrets.headers(textOf(alias)))),
  describe(alias) {
    const { kind, fields } = askWallet(() => hostSecrets.describe(textOf(alias)));
    return { kind, fields: Object.fromEntries(fields) };
  },
};

export const files = {
  read: (path) => ask(() => hostFiles.read(path)),
  text: (path) => decoder.decode(files.read(path)),
};

/** The call that runs now. */
export const context = { idempotencyKey: '', attempt: 1, body: undefined };

/** What a tool returns when its answer has a body, or is JSON as text already. */
export class Response {
  constructor(output = null, body = undefined, encoded = undefined) {
    this.output = output;
    this.body = body;
    this.encoded = encoded;
  }
}

/** Code of a step, run as playbooks expect it. */
export const script = make({
  Failure,
  Response,
  textOf,
  files,
  http,
  module: { Failure, files, http, log, payload, secrets },
});
