// The interpreter's exports: load a plugin's files, then run it as a transform or call it as a tool.
//
// This module is run once, when the component is built; what it leaves in memory is where every sandbox begins. So
// nothing here may depend on a moment or on chance: what does is done again in `load`.

import * as noetl from 'noetl-sdk';
import { install as installSignals } from './aborting.js';
import { failed, of } from './failing.js';
import { fetch } from './fetch.js';
import { Program } from './program.js';
import { install as installTimers, settled } from './settling.js';

const { Payload, Response, textOf } = noetl;
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

let program;
let exported = {};

globalThis.fetch = fetch;
installTimers();
installSignals();

export function load(entry, files) {
  try {
    reseed();
    program = new Program(files);
    exported = program.start(entry);
    if (!asked() && !functionOf('run')) {
      // Told now and not by each call: whoever pushes is here to read it.
      throw failed('no_function', `${entry} exports no function \`call(input)\`, \`main(input)\` or \`run(data)\``);
    }
  } catch (error) {
    throw of(error, program);
  }
}

export async function run(input) {
  try {
    setContext({ idempotencyKey: '', attempt: 1, body: undefined });
    const own = functionOf('run');
    if (own) return bytesOf(await answerOf(own, input));
    return encoder.encode(jsonOf(await ask(parsed(textIn(input)))));
  } catch (error) {
    throw of(error, program);
  }
}

export async function call({ arguments: given, body, idempotencyKey, attempt }) {
  try {
    setContext({ idempotencyKey, attempt, body: body && new Payload(body) });
    return responseOf(await ask(parsed(given)));
  } catch (error) {
    throw of(error, program);
  }
}

function responseOf(answer) {
  if (!(answer instanceof Response)) return { output: jsonOf(answer), body: undefined };
  const { output, body, encoded } = answer;
  if (body !== undefined && body !== null && !(body instanceof Payload)) {
    const why = 'the body of a `Response` is a payload: make one with `noetl.payload.of(...)`';
    throw failed('invalid_output', why);
  }
  if (encoded !== undefined && encoded !== null && typeof encoded !== 'string') {
    throw failed('invalid_output', '`encoded` of a `Response` is JSON as text');
  }
  return { output: encoded ?? jsonOf(output), body: body?.give() };
}

/** What the plugin exports as `describe`: an object, text that is JSON, or a function that gives one. */
export async function describe() {
  const own = exported?.describe;
  const said = typeof own === 'function' ? await guardedAsync(() => own()) : own;
  if (said === undefined || said === null) return undefined;
  return typeof said === 'string' ? said : jsonOf(said);
}

/** Calls what the plugin offers. */
function ask(input) {
  const own = asked();
  if (own) return answerOf(own, input);
  const why = 'the plugin has only `run(data)`, which is for the world `transform`: a tool exports `call(input)`, `main(input)` or a default';
  throw failed('no_function', why);
}

/** `call(input)`, `main(input)`, the default export, or the function that is all it exports. */
function asked() {
  const whole = typeof exported === 'function' ? exported : undefined;
  return functionOf('call') ?? functionOf('main') ?? functionOf('default') ?? whole;
}

function functionOf(name) {
  // Every function has a `call` that it was born with.
  if (typeof exported === 'function' && !Object.hasOwn(exported, name)) return undefined;
  return typeof exported?.[name] === 'function' ? exported[name] : undefined;
}

/** What the author's code answers in the end. */
function answerOf(own, input) {
  return settled(own(input), () =>
    failed('never_settles', 'the plugin awaits a promise that nothing is left to settle: no timer runs and no work is queued'),
  );
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

function textIn(input) {
  try {
    return decoder.decode(input);
  } catch {
    throw failed('invalid_input', 'the input is not UTF-8');
  }
}

function parsed(text) {
  try {
    return text === '' ? undefined : JSON.parse(text);
  } catch (error) {
    throw failed('invalid_input', `the input is not JSON: ${textOf(error)}`);
  }
}

function jsonOf(value) {
  try {
    return JSON.stringify(value ?? null) ?? 'null';
  } catch (error) {
    throw failed('invalid_output', `the answer is not JSON: ${textOf(error)}`);
  }
}

function bytesOf(value) {
  if (value instanceof Uint8Array) return value;
  if (value instanceof ArrayBuffer) return new Uint8Array(value);
  return encoder.encode(typeof value === 'string' ? value : jsonOf(value));
}
