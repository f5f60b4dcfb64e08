/**
 * What a plugin can ask of the host. A plugin is a module with one function:
 *
 *     import { log } from 'noetl';
 *     export function call(input) {
 *       log.info('greeting', { name: input.name });
 *       return { text: `Hello, ${input.name}!` };
 *     }
 *
 * A plugin may use the capabilities that its plugin.toml lists; using another one ends the call with the fault
 * `denied`, which no `catch` sees.
 */
declare module 'noetl' {
  export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };
  type Fields = Record<string, unknown>;
  type Labels = Record<string, string>;

  /**
   * Throw it to answer with a failure. It is not a crash: it does not count against the plugin. Any other error is a
   * failure too, with the code `exception` and its stack as the message.
   */
  export class Failure extends Error {
    constructor(code: string, message?: string, options?: { retryable?: boolean });
    /** Stable, for rules to match: `invalid_input`, `not_found`. */
    readonly code: string;
    /** Whether trying the same call again can help. */
    readonly retryable: boolean;
  }

  /** Immutable bytes somewhere in the platform. One that is only passed on never enters the plugin. */
  export class Payload {
    private constructor();
    readonly size: number;
    readonly mediaType: string;
    /** The sha256 of the content, as 64 hexadecimal digits. */
    readonly digest: string;
    read(offset?: number, length?: number): Uint8Array;
    text(): string;
    json(): any;
    chunks(size?: number): Generator<Uint8Array>;
  }

  /** Collects bytes into a new payload. One that is not finished leaves nothing behind. */
  export interface Writer {
    write(data: Uint8Array | string): void;
    /** Append a range of another payload without it entering the plugin. */
    splice(source: Payload, offset?: number, length?: number): void;
    finish(): Payload;
  }

  /** For plugins that hold `payload`. */
  export const payload: {
    Writer: new (mediaType?: string) => Writer;
    of(data: Uint8Array | string, mediaType?: string): Payload;
    ofJson(value: unknown): Payload;
  };

  /** For plugins that hold `log`. `console.log` writes to the same log without it. */
  export const log: Record<'trace' | 'debug' | 'info' | 'warn' | 'error', (message: unknown, fields?: Fields) => void>;

  /** For plugins that hold `metrics`. */
  export const metrics: {
    count(name: string, value?: number | bigint, labels?: Labels): void;
    gauge(name: string, value: number, labels?: Labels): void;
  };

  /** For plugins that hold `clock`, in milliseconds. `Date` works without it. */
  export const clock: { now(): number; monotonic(): number };

  /** For plugins that hold `random`. `crypto` and `Math.random` work without it. */
  export const random: { bytes(length: number): Uint8Array; number(): bigint };

  /** For plugins that hold `kv`. Writes become true only when the call succeeds. */
  export const kv: {
    entry(key: string): { value: Uint8Array; version: bigint; json(): any } | undefined;
    get(key: string): Uint8Array | undefined;
    getJson(key: string, otherwise?: any): any;
    put(key: string, value: Uint8Array | string): void;
    putJson(key: string, value: unknown): void;
    delete(key: string): void;
    /** Write only if the version is still `expected` (`undefined`: only if the key is absent). */
    compareAndSwap(key: string, expected: bigint | undefined, value: Uint8Array | string): boolean;
    keys(prefix?: string): Generator<string>;
  };

  export interface ObjectInfo {
    key: string;
    size: number;
    digest: string;
    mediaType: string;
  }

  /** For plugins that hold `objects` and `payload`. */
  export const objects: {
    open(key: string): Payload | undefined;
    put(key: string, content: Payload): ObjectInfo;
    delete(key: string): void;
    entries(prefix?: string): Generator<ObjectInfo>;
  };

  export interface HttpOptions {
    headers?: Record<string, string>;
    body?: Payload | Uint8Array | string;
    json?: unknown;
    /** In milliseconds; bounded by the call's own `limits.wall_ms`. */
    timeout?: number;
  }

  export interface HttpResponse {
    status: number;
    headers: [string, string][];
    body: Payload;
    header(name: string): string | undefined;
    /** This answer, or a failure when its status is 400 or more. */
    ok(): HttpResponse;
    text(): string;
    json(): any;
  }

  /** For plugins that hold `http-client` and `payload`: the hosts that `http.allow` names. */
  export const http: {
    request(method: string, url: string, options?: HttpOptions): HttpResponse;
    get(url: string, options?: HttpOptions): HttpResponse;
    post(url: string, options?: HttpOptions): HttpResponse;
    put(url: string, options?: HttpOptions): HttpResponse;
    delete(url: string, options?: HttpOptions): HttpResponse;
  };

  /** What may be known of a credential. */
  export interface CredentialDescription {
    /** `bearer`, `basic`, `api_key`, `postgres`, ... */
    kind: string;
    /** Fields that say where and as whom. None of them is a secret. */
    fields: Record<string, string>;
  }

  /**
   * For plugins that hold `secrets`: credentials of the tenant's wallet, by alias. Nothing here is a secret. A placeholder
   * goes into an address, the value of a header or a body of text up to 1 MiB; the host replaces it when the request leaves
   * for a host that the credential is bound to. One that is computed with stands for nothing.
   */
  export const secrets: {
    /** What stands for one field; `basic` is `user:password` as HTTP writes it. */
    placeholder(alias: string, field: string): string;
    /**
     * The headers that log a request in: for bearer, basic, api_key and oauth2. Of one that signs (hmac, s3) the header
     * stands for a signature, which the host makes of the request when it leaves.
     */
    headers(alias: string): Record<string, string>;
    describe(alias: string): CredentialDescription;
  };

  /** For plugins that hold `files`: the folder that the operator names with `files.folder`. */
  export const files: {
    read(path: string): Uint8Array;
    text(path: string): string;
  };

  /** Code of a step, run as playbooks expect it: what `tools/javascript` does. */
  export const script: {
    run(input: unknown): Promise<Response>;
  };

  /** The call that runs now. */
  export const context: {
    /** The same for every attempt at the same work; empty for a transform. */
    readonly idempotencyKey: string;
    /** 1 for the first attempt. */
    readonly attempt: number;
    /** Bulk input of the step, if it has any. */
    readonly body: Payload | undefined;
  };

  /** What a tool returns when its answer has a body. Without one, the plain value is enough. */
  export class Response {
    constructor(output?: unknown, body?: Payload, encoded?: string);
    output: unknown;
    body: Payload | undefined;
    /** The output as JSON, for a plugin that has it as text already; it goes before `output`. */
    encoded: string | undefined;
  }
}
