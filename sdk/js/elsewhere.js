// Results whose bulk is in a payload and not in them, as code sees them.
//
// Rows of a large SQL result and large bodies of HTTP are kept beside the result. `result.rows ?? []` would be an empty list, and
// the step would go through nothing and succeed. So these names throw, as they do in templates; everything else of such a
// result is there.

/** How far below the input there are results. */
const DEEPEST = 4;

const ROWS = {
  names: ['rows'],
  why:
    'the rows are too large for a result and are a table in a payload (`_ref` of the result): select fewer of them, hand ' +
    '`_ref` on, or move them with the tool `transfer`',
};
const BODY = {
  names: ['data', 'body'],
  why:
    'the body is not in the result but in a payload (`_ref` of the result): hand `_ref` on as `body_ref` of an `http` step, ' +
    'or read it with the tool `artifact`',
};

const isMap = (value) => typeof value === 'object' && value !== null && !Array.isArray(value);

/** The value, with results that lack their bulk in the place of such maps. */
export function marked(value, Failure, depth = 0) {
  if (!isMap(value) || depth > DEEPEST) return value;
  for (const [name, field] of Object.entries(value)) if (isMap(field)) value[name] = marked(field, Failure, depth + 1);
  const missing = missingOf(value);
  if (!missing) return value;
  return new Proxy(value, {
    get(fields, name, self) {
      if (missing.names.includes(name) && !(name in fields)) throw new Failure('elsewhere', missing.why);
      return Reflect.get(fields, name, self);
    },
  });
}

function missingOf(fields) {
  const isNumber = (name) => typeof fields[name] === 'number';
  const isTable = 'affected_rows' in fields && 'columns' in fields && isNumber('row_count');
  const kind = isTable ? ROWS : '_ref' in fields && isNumber('status_code') ? BODY : null;
  const isThere = kind?.names.some((name) => name in fields);
  return isThere || '_truncated' in fields || '_omitted' in fields ? null : kind;
}
