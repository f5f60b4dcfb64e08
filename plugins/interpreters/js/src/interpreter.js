// The interpreter's exports: load a plugin's files, then run it as a transform or call it as a tool.
//
// This module is run once, when the component is built; what it leaves in memory is where every sandbox begins. So
// nothing here may depend on a moment or on chance: what does is done again in `load`.

import * as noetl from 'noetl-sdk';
import { failed, of } from './failing.js';
import { Program } from './program.js';

const encoder = new TextEncoder();
const decoder = new TextDecoder();

let program;
let exported = {};

export function load(entry, files) {
  reseed();
  program = new Program(files);
  exported = guarded(() => program.start(entry));
}

export async function run(input) {
  setContext({ idempotencyKey: '', attempt: 1, body: undefined });
  const own = functionOf('run');
  if (own) return bytesOf(await guardedAsync(() => own(input)));
  return encoder.encode(jsonOf(await ask(parsed(decoder.decode(input)))));
}

export async function call({ arguments: given, body, idempotencyKey, attempt }) {
  setContext({ idempotencyKey, attempt, body: body && new noetl.Payload(body) });
  const answer = await ask(parsed(given));
  if (answer instanceof noetl.Response) {
    return { output: answer.encoded ?? jsonOf(answer.output), body: answer.body?.give() };
  }
  return { output: jsonOf(answer), body: undefined };
}

/** Calls what the plugin offers: `call(input)`, `main(input)` or its default export. */
function ask(input) {
  const own = functionOf('call') ?? functionOf('main') ?? functionOf('default');
  if (!own) throw failed('no_function', 'the plugin exports no function `call(input)`, `main(input)` or `run(data)`');
  return guardedAsync(() => own(input));
}

function functionOf(name) {
  return typeof exported?.[name] === 'function' ? exported[name] : undefined;
}

/** Calls into the author's code; whatever it throws is a failure of the plugin. */
function guarded(work) {
  try {
    return work();
  } catch (error) {
    throw of(error, program);
  }
}

async function guardedAsync(work) {
  try {
    return await work();
  } catch (error) {
    throw of(error, program);
  }
}

function setContext(fields) {
  Object.assign(noetl.context, fields);
}

/** The engine's own generator was seeded when the component was built: all sandboxes would see the same numbers. */
function reseed() {
  const words = new Uint32Array(2);
  Math.random = () => {
    crypto.getRandomValues(words);
    return (words[0] * 2 ** 21 + (words[1] >>> 11)) / 2 ** 53;
  };
}

function parsed(text) {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch (error) {
    throw failed('invalid_input', `the input is not JSON: ${error.message}`);
  }
}

function jsonOf(value) {
  try {
    return JSON.stringify(value ?? null) ?? 'null';
  } catch (error) {
    throw failed('invalid_output', `the answer is not JSON: ${error.message}`);
  }
}

function bytesOf(value) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return encoder.encode(typeof value === 'string' ? value : jsonOf(value));
}
