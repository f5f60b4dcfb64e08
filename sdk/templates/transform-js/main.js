// `{{path}}`: a transform that greets whoever its input names.

import { Failure, log } from 'noetl';

export function call(input) {
  const name = input.name.trim();
  if (!name) throw new Failure('invalid_input', '`name` is empty');
  log.info('greeting', { name });
  return { greeting: `Hello, ${name}!` };
}
