// Code of a step, run as playbooks expect it: what `tools/javascript` does, for whoever makes a tool of their own. It is
// part of the interpreter, so that no call has to compile it.
//
// The code is the body of an async function, whose lines stay where they are: what it is wrapped into is in front of its
// first line. What it is given lies in a function around it, so that it may declare the same names itself.

import { marked } from './elsewhere.js';

/** Characters of each stream that are kept. */
const MOST = 64 << 10;
const LONGEST_MESSAGE = 2 << 10;
/** A script is read whole, into the sandbox. */
const LONGEST_SCRIPT = 8 << 20;
/** The engine has no tables of letters beyond these. */
const NAME = /^[A-Za-z_$\u0080-\uffff][\w$\u0080-\uffff]*$/;

export function make({ Failure, Response, textOf, files, http, module }) {
  /** Runs the code of a step, as the arguments have it: `code` or `script`, `input`. */
  async function run(given) {
    const { code, name, input, context } = optionsOf(given);
    const streams = new Streams();
    try {
      const value = await valueOf(code, name, input, { context, console: streams.console(console) });
      const answer = value === undefined || value === null ? streams.texts() : value;
      return new Response(null, undefined, written(answer));
    } catch (error) {
      return new Response(null, undefined, JSON.stringify(broken(error, name, streams)));
    }
  }

  function optionsOf(given) {
    if (!isObject(given)) throw wrong('the arguments are one object');
    const input = marked(given.input ?? given.args ?? {}, Failure);
    if (!isObject(input)) throw wrong('`input` is an object');
    if (given.libs !== undefined && given.libs !== null) throw wrong('`libs` is for Python: this tool has no modules');
    if (isSome(given.code) && isSome(given.script)) throw wrong('write `code` or `script`, not both');
    const context = { execution_id: null, step: null, ...marked(given.context, Failure) };
    if (isSome(given.script)) return { ...sourceOf(scriptOf(given.script)), input, context };
    if (typeof given.code !== 'string') throw wrong('`code` is missing: the text to run');
    return { code: given.code, name: 'code', input, context };
  }

  /** A `script` that is text is a file, if it is one word that ends like one, or the code itself. */
  function scriptOf(script) {
    if (typeof script !== 'string') return script;
    const isFile = /^\s*\S+\.m?js\s*$/.test(script);
    return isFile ? { uri: script.trim() } : { uri: 'script', source: { type: 'inline', code: script } };
  }

  function sourceOf({ uri, source = {} }) {
    const { type = 'code' in source ? 'inline' : 'file', code, endpoint, method = 'GET', headers, timeout } = source;
    if (type === 'inline' && typeof code === 'string') return { code, name: uri ?? 'script' };
    if (type === 'inline') throw wrong('`script.source.code` is missing: the text to run');
    if (type !== 'file' && type !== 'http') {
      throw wrong(`\`script.source.type\` is \`${type}\`; a script comes from \`inline\`, \`file\` or \`http\``);
    }
    const place = type === 'http' ? `${endpoint ?? ''}${uri ?? ''}` : uri;
    if (!place) throw wrong('`script.uri` is missing: where the text is');
    if (type === 'file') return { code: files.text(place), name: place };
    const seconds = timeout === undefined ? undefined : Number(timeout) * 1_000;
    const answer = http.request(method.toUpperCase(), place, { headers, timeout: seconds });
    if (answer.status !== 200) {
      const retryable = answer.status >= 500;
      throw new Failure('script_unavailable', `${place} answered with status ${answer.status}`, { retryable });
    }
    if (answer.body.size > LONGEST_SCRIPT) {
      throw new Failure('too_large', `the script at ${place} has ${answer.body.size} bytes; the most are ${LONGEST_SCRIPT}`);
    }
    return { code: answer.text(), name: place };
  }

  /** What the code gives: a `return` of its own, its `result`, or what its `main` answers. */
  async function valueOf(code, name, input, more) {
    const { execution_id, step, attempt, variables = {} } = more.context;
    const told = { input_data: { ...input }, execution_id, step, attempt, variables };
    const around = { input, args: input, noetl: module, ...told, ...more };
    for (const [key, value] of Object.entries(input)) if (isName(key)) around[key] = value;
    const ended = (result, main) => new Ended(result, main);
    const tail =
      "return $ended(typeof result === 'undefined' ? undefined : result, typeof main === 'function' ? main : undefined);";
    const names = ['$ended', ...Object.keys(around)].join(', ');
    const front = `(function (${names}) { return async function () {`;
    const text = `${front}${code}\n;${tail}\n}; })\n//# sourceURL=${name}`;
    let body;
    try {
      body = (0, eval)(text);
    } catch (error) {
      // The engine names the place it was asked at, with the line of the text.
      if (typeof error?.lineNumber === 'number') lines.set(error, error.lineNumber);
      throw error;
    }
    const value = await body(ended, ...Object.values(around))();
    if (!(value instanceof Ended)) return value;
    return value.result ?? (value.main && (await value.main(input)));
  }

  function broken(error, name, streams) {
    const isError = error instanceof Error;
    const exception = isError ? textOf(error.name) : typeof error;
    const message = textOf(isError ? error.message : error);
    const line = isError ? lineOf(error, name) : null;
    const stack = isError ? framesOf(error, name) : '';
    const place = line === null ? '' : ` (${name}, line ${line})`;
    const own = error instanceof Failure;
    const said = own ? message : isError ? `${exception}: ${message}` : message;
    streams.complain([said, stack].filter(Boolean).join('\n'));
    return {
      _failure: {
        code: own ? textOf(error.code) : 'javascript_error',
        message: said.slice(0, LONGEST_MESSAGE) + place,
        retryable: own ? Boolean(error.retryable) : false,
      },
      js: { exception, message: message.slice(0, LONGEST_MESSAGE), line, stack },
      ...streams.texts(),
    };
  }

  const wrong = (message) => new Failure('invalid_input', message);
  return { run };
}

/** The code came to its end without a `return`. */
class Ended {
  constructor(result, main) {
    this.result = result;
    this.main = main;
  }
}

/** What the code writes to the console: kept for its result, and passed on to the tool's log. */
class Streams {
  #texts = { stdout: '', stderr: '' };
  #beyond = { stdout: 0, stderr: 0 };
  #on;

  console(on) {
    this.#on = on;
    const write = (stream, level) => (...parts) => {
      const text = parts.map(shown).join(' ');
      this.#keep(stream, `${text}\n`);
      on[level]?.(text);
    };
    const [out, err] = ['stdout', 'stderr'];
    return {
      __proto__: on,
      log: write(out, 'log'),
      info: write(out, 'info'),
      debug: write(out, 'debug'),
      warn: write(err, 'warn'),
      error: write(err, 'error'),
    };
  }

  complain(text) {
    this.#keep('stderr', `${text}\n`);
    this.#on?.error(text);
  }

  #keep(stream, text) {
    const room = MOST - this.#texts[stream].length;
    this.#texts[stream] += text.slice(0, room);
    this.#beyond[stream] += Math.max(0, text.length - room);
  }

  texts() {
    const text = (stream) => this.#texts[stream] + (this.#beyond[stream] ? `\n[${this.#beyond[stream]} more characters]` : '');
    return { stdout: text('stdout'), stderr: text('stderr') };
  }
}

/** JSON, with text for the numbers it has not. */
function written(value) {
  const text = JSON.stringify(value, (_, item) => {
    if (typeof item === 'number' && !Number.isFinite(item)) return String(item);
    if (typeof item === 'bigint') return Number.isSafeInteger(Number(item)) ? Number(item) : String(item);
    if (item instanceof Map) return Object.fromEntries(item);
    return item instanceof Set ? [...item] : item;
  });
  return text ?? JSON.stringify(String(value));
}

function shown(part) {
  if (typeof part === 'string') return part;
  if (part instanceof Error) return String(part);
  try {
    return JSON.stringify(part) ?? String(part);
  } catch {
    return String(part);
  }
}

/** The lines of a stack that are the code's own, as engines write them: `f@code:3:11` and `at f (code:3:11)`. */
function own(error, name) {
  const quoted = name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&');
  const place = new RegExp(`(?:^|[@(\\s])${quoted}:(\\d+):(\\d+)`);
  return (typeof error.stack === 'string' ? error.stack : '').split('\n').flatMap((line) => {
    const [, row, column] = place.exec(line) ?? [];
    return row === undefined ? [] : [{ line: Number(row), text: `    at ${name}:${row}:${column}` }];
  });
}

function lineOf(error, name) {
  if (lines.has(error)) return lines.get(error);
  const [first] = own(error, name);
  if (first) return first.line;
  return error.fileName === name && error.lineNumber ? error.lineNumber : null;
}

/** Lines of texts that could not be compiled. */
const lines = new WeakMap();

const framesOf = (error, name) => own(error, name).map(({ text }) => text).join('\n');
const isSome = (value) => value !== undefined && value !== null;
const isObject = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** Whether it can be a variable; what the language keeps for itself cannot. */
function isName(key) {
  if (!NAME.test(key) || /\s/.test(key)) return false;
  try {
    (0, eval)(`(function (${key}) {})`);
    return true;
  } catch {
    return false;
  }
}
