// Where the words `import` and `export` are in a text, and not in its strings, comments, templates and regular expressions.
//
// Not a parser: every call begins in a new sandbox whose engine has no compiler, where a parser written in JavaScript takes
// 25 ms and more for a kilobyte. This looks only at the signs that begin or end something; the engine's own search
// finds them. Whether a slash divides or begins a regular expression is told by what is before it. Where that is not
// enough there is doubt, and a file in doubt is given to a parser.

/** Thrown where only a parser can tell. */
export const DOUBT = Symbol('doubt');

const CLOSES = { ')': '(', ']': '[', '}': '{' };
/** Words before a regular expression, where another word would be divided. */
const BEFORE_VALUES = new Set('return typeof case in of delete void throw new else do instanceof yield await'.split(' '));
/** Words whose parentheses are before a statement. */
const BEFORE_STATEMENTS = new Set(['if', 'while', 'for', 'with']);
const BEFORE_BLOCKS = new Set(['else', 'do', 'try', 'finally']);
/** Marks the substitution of a template among the open brackets. */
const TEMPLATE = -1;

const OF_TEMPLATE = /[`\\]|\$\{/g;
const OF_EXPRESSION = /[\\[\]\n/]/g;

const isSpace = (code) => code === 32 || (code >= 9 && code <= 13) || code === 0xa0 || code === 0xfeff || code === 0x2028 || code === 0x2029;
export const isOfName = (code) =>
  (code >= 97 && code <= 122) || (code >= 65 && code <= 90) || (code >= 48 && code <= 57) || code === 95 || code === 36 || (code > 127 && !isSpace(code));

/**
 * Reads a text from a place on. `pattern` finds one sign or word at a time: quotes, slashes and brackets, which are seen to
 * here, and whatever else is told to `visit`: what was found, where, and how many brackets are open. Ends with the text,
 * where `visit` answers true, or where a bracket is closed that was not opened. Gives where it ended.
 */
export function scan(text, from, pattern, visit) {
  const reader = new Reader(text);
  pattern.lastIndex = from;
  while (pattern.test(text)) {
    const end = pattern.lastIndex;
    const sign = text[end - 1];
    let next = end;
    if (sign === '"' || sign === "'") next = afterString(text, end, sign);
    else if (sign === '`') next = reader.template(end);
    else if (sign === '/') next = reader.slash(end - 1);
    else if (sign === '(' || sign === '{' || sign === '[') reader.open.push(end - 1);
    else if (sign === ')' || sign === '}' || sign === ']') {
      if (reader.open.length === 0) return end - 1;
      next = reader.close(end, sign);
    } else if (visit(text, end, reader)) return end;
    pattern.lastIndex = next;
  }
  if (reader.open.length > 0) throw DOUBT;
  return text.length;
}

class Reader {
  /** Where brackets were opened that are still open. */
  open = [];
  #text;
  /** Where comments begin, by where the last sign of them ends. */
  #comments = new Map();
  #opened = 0;

  constructor(text) {
    this.#text = text;
  }

  close(end, sign) {
    const opened = this.open.pop();
    if (opened === TEMPLATE && sign === '}') return this.template(end);
    if (this.#text[opened] !== CLOSES[sign]) throw DOUBT;
    this.#opened = opened;
    return end;
  }

  /** Goes on in a template: to its end, or into a substitution. */
  template(from) {
    OF_TEMPLATE.lastIndex = from;
    while (OF_TEMPLATE.test(this.#text)) {
      const end = OF_TEMPLATE.lastIndex;
      if (this.#text[end - 1] === '`') return end;
      if (this.#text[end - 1] === '{') {
        this.open.push(TEMPLATE);
        return end;
      }
      OF_TEMPLATE.lastIndex = end + 1;
    }
    throw DOUBT;
  }

  /** What a slash begins, left behind: a comment, a regular expression, or nothing. */
  slash(at) {
    const next = this.#text[at + 1];
    if (next === '/' || next === '*') {
      const found = this.#text.indexOf(next === '/' ? '\n' : '*/', at + 2);
      if (found < 0 && next === '*') throw DOUBT;
      const end = found < 0 ? this.#text.length : found + (next === '*' ? 2 : 0);
      let last = end;
      while (isSpace(this.#text.charCodeAt(last - 1))) last--;
      this.#comments.set(last, at);
      return end;
    }
    return this.#divides(at) ? at + 1 : afterExpression(this.#text, at);
  }

  /** Where the token ends that is before a place; 0 where there is none. */
  before(at) {
    for (let end = at; ; ) {
      while (end > 0 && isSpace(this.#text.charCodeAt(end - 1))) end--;
      const comment = this.#comments.get(end);
      if (comment === undefined || end === 0) return end;
      end = comment;
    }
  }

  /** The word that ends at a place; empty for the name of a property, and where there is none. */
  #word(end) {
    let start = end;
    while (start > 0 && isOfName(this.#text.charCodeAt(start - 1))) start--;
    return this.#text[start - 1] === '.' ? '' : this.#text.slice(start, end);
  }

  #divides(at) {
    const end = this.before(at);
    if (end === 0) return false;
    const last = this.#text[end - 1];
    // The bracket before a slash is the one that was closed last.
    if (last === ')') return !BEFORE_STATEMENTS.has(this.#word(this.before(this.#opened)));
    if (last === '}') return !this.#isBlock(this.#opened);
    if (last === ']' || last === '"' || last === "'" || last === '`') return true;
    if (isOfName(last.charCodeAt(0))) return !BEFORE_VALUES.has(this.#word(end));
    return (last === '+' || last === '-') && this.#text[end - 2] === last;
  }

  #isBlock(opened) {
    const end = this.before(opened);
    if (end === 0) return true;
    const last = this.#text[end - 1];
    if (last === ')' || last === ';' || last === '{' || last === '}') return true;
    if (last === '>') return this.#text[end - 2] === '=';
    if (last === ':') throw DOUBT;
    if (!isOfName(last.charCodeAt(0))) return false;
    const word = this.#word(end);
    if (BEFORE_BLOCKS.has(word)) return true;
    if (BEFORE_VALUES.has(word)) return false;
    throw DOUBT;
  }
}

function afterString(text, from, quote) {
  for (let at = from; ; ) {
    const end = text.indexOf(quote, at);
    if (end < 0) throw DOUBT;
    let first = end;
    while (text[first - 1] === '\\') first--;
    if ((end - first) % 2 === 0) return end + 1;
    at = end + 1;
  }
}

function afterExpression(text, slash) {
  let inClass = false;
  OF_EXPRESSION.lastIndex = slash + 1;
  while (OF_EXPRESSION.test(text)) {
    const sign = text[OF_EXPRESSION.lastIndex - 1];
    if (sign === '\n') break;
    if (sign === '\\') OF_EXPRESSION.lastIndex += 1;
    else if (sign === '/' && !inClass) return OF_EXPRESSION.lastIndex;
    else if (sign !== '/') inClass = sign === '[';
  }
  throw DOUBT;
}
