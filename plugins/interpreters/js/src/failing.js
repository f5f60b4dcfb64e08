// Errors of a plugin as failures its author can act on.
//
// What is thrown is the author's own: anything at all, and asking it for a text may throw again. A failure is made of it
// whatever it is; a call must not end as if the interpreter had crashed.

import { Failure, textOf } from 'noetl-sdk';

/** Links of a chain of causes that are told. */
const MOST_CAUSES = 5;

const made = new WeakSet();
/** Where a text is that could not be compiled: the engine knows no better than where it was asked to. */
const places = new WeakMap();

export function failed(code, message, retryable = false) {
  const failure = { code, message, retryable };
  made.add(failure);
  return failure;
}

/** The failure an error is, with the author's own files and lines. */
export function of(error, program) {
  if (made.has(error)) return error;
  try {
    if (error instanceof Failure) return failed(textOf(error.code), textOf(error.message), Boolean(error.retryable));
    return failed('exception', described(error, program));
  } catch {
    return failed('exception', textOf(error));
  }
}

/** Says of an error which place of a file it is about. */
export function at(error, path, line, column) {
  places.set(error, `    at ${path}:${line}${column === undefined ? '' : `:${column}`}`);
  return error;
}

function described(error, program) {
  const texts = [];
  const seen = new Set();
  for (let cause = error; texts.length <= MOST_CAUSES && !seen.has(cause); cause = cause.cause) {
    seen.add(cause);
    texts.push([textOf(cause), ...linesOf(cause, program)].join('\n'));
    if (!(cause instanceof Error) || cause.cause === undefined) break;
  }
  return texts.join('\nCaused by: ');
}

function linesOf(error, program) {
  if (!(error instanceof Error)) return [];
  if (places.has(error)) return [places.get(error)];
  const frames = framesOf(typeof error.stack === 'string' ? error.stack : '', program);
  if (frames.length > 0) return frames;
  return program?.has(error.fileName) ? [`    at ${error.fileName}:${error.lineNumber}`] : [];
}

/** `call@orders.js:3:11` becomes `    at call (orders.js:3:11)`; frames of the interpreter itself are left out. */
function framesOf(stack, program) {
  const frames = [];
  for (const frame of stack.split('\n')) {
    const [, name, file, line, column] = /^(.*?)@(.*?):(\d+):(\d+)$/.exec(frame) ?? [];
    if (file === undefined || !program?.has(file)) continue;
    const place = `${file}:${line}:${program.columnOf(file, Number(line), Number(column))}`;
    frames.push(name ? `    at ${name} (${place})` : `    at ${place}`);
  }
  return frames;
}
