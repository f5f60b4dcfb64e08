// A file's text as a function. Lines stay where they are: what is rewritten is rewritten within its line, and what comes
// before the first is counted, so that its columns can be told too.

import { transform } from 'sucrase';
import { at } from './failing.js';

/** Shows where the author's text begins behind what the rewriting puts in front of it. */
const MARK = '/**/';

/** What takes the functions that see what a module exports. */
export const SHOWING = '__export';

/** The text of a module or of TypeScript, with every use of what it imports rewritten. */
export function rewritten(path, text) {
  const transforms = path.endsWith('.ts') ? ['imports', 'typescript'] : ['imports'];
  try {
    const { code } = transform(MARK + text, { transforms, filePath: path, production: true });
    return { code, front: code.indexOf(MARK) + MARK.length };
  } catch (error) {
    const { line, column } = error.loc ?? {};
    if (line === undefined) throw error;
    const said = String(error.message).replace(/^Error transforming .*?: (SyntaxError: )?/, '').replace(/ \(\d+:\d+\)$/, '');
    throw at(new SyntaxError(said), path, line, Math.max(1, line === 1 ? column - MARK.length : column));
  }
}

/** The function of these names that a text is. `front` is how much of the text is not the author's; `shown` are names
 * that are exported, with the variables they are. */
export function compiled(path, names, { code, front = 0, isStrict = false, shown = [] }) {
  const shows = shown.map(([name, local]) => `${JSON.stringify(name)}: () => ${local}`);
  const showing = shows.length > 0 ? `${SHOWING}({ ${shows.join(', ')} });` : '';
  const before = `(function (${names.join(', ')}) {${isStrict ? '"use strict";' : ''}${showing}`;
  const shift = before.length + front;
  try {
    return { body: (0, eval)(`${before}${code}\n})\n//# sourceURL=${path}`), shift };
  } catch (error) {
    const { lineNumber: line, columnNumber: column } = error;
    if (!(error instanceof SyntaxError)) throw error;
    const told = advised(error, code);
    if (line === undefined) throw told;
    throw at(told, path, line, line === 1 ? Math.max(1, column - shift) : column);
  }
}

/** The engine is built without the tables of Unicode, and says only that it knows no such property. */
function advised(error, code) {
  if (!/regular expression|property name/i.test(error.message) || !/\\[pP]\{/.test(code)) return error;
  return new SyntaxError(
    `${error.message} (\\p{...} is not there: write the signs it stands for, such as [A-Za-z\\u00C0-\\u024F] for \\p{L} and [0-9] for \\p{N})`,
  );
}
