// Leaves the text as it is, and remembers which files it was asked for: a test that needs more of it runs in a sandbox.

/** Files that were given to the parser. */
export const parsed = [];

export function transform(code, { filePath }) {
  parsed.push(filePath);
  const at = code.indexOf('SYNTAX');
  if (at < 0) return { code: `"use strict";${code}` };
  const before = code.slice(0, at).split('\n');
  const loc = { line: before.length, column: before.at(-1).length + 1 };
  const error = new SyntaxError(`Error transforming a.ts: SyntaxError: Unexpected token (${loc.line}:${loc.column})`);
  throw Object.assign(error, { loc });
}
