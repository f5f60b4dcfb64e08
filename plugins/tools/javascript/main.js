// The tool `tools/javascript`: the code of a step, run by the interpreter's own `script`.

import { script } from 'noetl';

export const call = (input) => script.run(input);
