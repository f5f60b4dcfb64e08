// Errors of a plugin as failures its author can act on.

import { Failure } from 'noetl-sdk';

export const failed = (code, message, retryable = false) => ({ code, message, retryable });

/** The failure an error is, with the author's own files and lines. */
export function of(error, program) {
  if (error instanceof Failure) return failed(error.code, error.message, error.retryable);
  if (!(error instanceof Error)) return failed('exception', String(error));
  const place = error.fileName && program?.has(error.fileName) ? [`    at ${error.fileName}:${error.lineNumber}`] : [];
  const frames = framesOf(error.stack ?? '', program);
  return failed('exception', [String(error), ...(frames.length > 0 ? frames : place)].join('\n'));
}

/** `call@orders.js:3:11` becomes `    at call (orders.js:3:11)`; frames of the interpreter itself are left out. */
function framesOf(stack, program) {
  const frames = [];
  for (const line of stack.split('\n')) {
    const [, name, file, place] = /^(.*?)@(.*?):(\d+:\d+)$/.exec(line) ?? [];
    if (file === undefined || !program?.has(file)) continue;
    frames.push(name ? `    at ${name} (${file}:${place})` : `    at ${file}:${place}`);
  }
  return frames;
}
