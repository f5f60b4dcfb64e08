// `{{path}}`: a tool that counts how often it was called for a name.

import { Failure, kv, log } from 'noetl';

export function call({ name }) {
  if (!name) throw new Failure('invalid_input', '`name` is empty');
  const key = `calls/${name}`;
  // The write is kept only if this call succeeds.
  const calls = kv.getJson(key, 0) + 1;
  kv.putJson(key, calls);
  log.info('counted', { name, calls });
  return { name, calls };
}
