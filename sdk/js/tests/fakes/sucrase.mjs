// Leaves the text as it is: files of tests are CommonJS.

export function transform(code) {
  const at = code.indexOf('SYNTAX');
  if (at < 0) return { code: `"use strict";${code}` };
  const before = code.slice(0, at).split('\n');
  const loc = { line: before.length, column: before.at(-1).length + 1 };
  const error = new SyntaxError(`Error transforming a.js: SyntaxError: Unexpected token (${loc.line}:${loc.column})`);
  throw Object.assign(error, { loc });
}
