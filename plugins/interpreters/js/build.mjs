// Makes the component: node build.mjs SOURCE SDK WIT OUTPUT. Run in the folder that has the packages installed.

import { writeFile } from 'node:fs/promises';
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { componentize } from '@bytecodealliance/componentize-js';
import { build } from 'esbuild';

const [source, sdk, wit, output] = process.argv.slice(2).map((path) => resolve(path));
const bundle = join(mkdtempSync(join(tmpdir(), 'noetl-js-')), 'interpreter.js');
await build({
  entryPoints: [join(source, 'interpreter.js')],
  outfile: bundle,
  bundle: true,
  format: 'esm',
  legalComments: 'none',
  alias: { 'noetl-sdk': join(sdk, 'noetl.js') },
  external: ['noetl:*'],
  nodePaths: [resolve('node_modules')],
});
const { component } = await componentize({
  sourcePath: bundle,
  witPath: wit,
  worldName: 'interpreter',
  disableFeatures: ['http', 'fetch-event'],
});
await writeFile(output, component);
