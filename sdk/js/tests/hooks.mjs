// Gives `noetl:*` imports a host that is made of lists: `noetl:kv/kv@0.1.0` is fakes/kv.mjs. What the interpreter imports
// by names of its build is here too.

import { register } from 'node:module';

const here = JSON.stringify(import.meta.url);
register(
  `data:text/javascript,${encodeURIComponent(`
    export async function resolve(name, context, next) {
      const [, fake] = /^noetl:([a-z-]+)\\//.exec(name) ?? [];
      const built = { 'noetl-sdk': '../noetl.js', sucrase: './fakes/sucrase.mjs' }[name];
      if (built !== undefined) return { url: new URL(built, ${here}).href, shortCircuit: true };
      return fake === undefined ? next(name, context) : { url: new URL('./fakes/' + fake + '.mjs', ${here}).href, shortCircuit: true };
    }
  `)}`,
);
