// Where a name that a file imports leads: another file of the plugin, or of a library it brings, whose `package.json` says
// where it begins. `is` and `about` are all that is known of the files here: whether a path is one, and what the
// `package.json` of a folder says.

/** Tried after the name itself. */
const ENDINGS = ['', '.js', '.mjs', '.cjs', '.ts', '.json'];

/** Tried where the name is a folder's. */
const INDEXES = ['index.js', 'index.mjs', 'index.cjs', 'index.ts', 'index.json'];

/** Where a bare name is looked for after the folders of libraries around the file that asks: the plugin's own folder, and
 * what was installed below it. */
const PLACES = ['', 'vendor/', 'vendor/node_modules/'];

/** What a library may have its files chosen by. CommonJS goes first: it can be had by both `require` and `import`. What is
 * made for Node.js alone would ask for modules of Node.js, and what is made for browsers does not. */
const CONDITIONS = [
  ['require', 'browser', 'default'],
  ['import', 'module', 'browser', 'default'],
];

/** Modules of Node.js that people look for here. */
const OF_NODE = new Set(
  'assert buffer child_process cluster crypto dns events fs http http2 https module net os path perf_hooks process querystring readline stream string_decoder timers tls tty url util v8 vm worker_threads zlib'.split(' '),
);

/** The path that a name stands for in a file; undefined where there is none. */
export function find(name, from, { is, about }) {
  const files = { is, about };
  if (name.startsWith('.')) return fileOrFolder(join(from, name), files);
  if (name.startsWith('#')) return own(name, from, files);
  const [, library, rest = ''] = /^((?:@[^/]+\/)?[^/]+)(?:\/(.*))?$/.exec(name) ?? [];
  if (library === undefined) return undefined;
  for (const place of [...around(from), ...PLACES]) {
    const folder = place + library;
    const found = exported(folder, rest ? `./${rest}` : '.', files) ?? fileOrFolder(place + name, files);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** What to do about a name that leads nowhere. */
export function advice(name) {
  if (name.startsWith('.')) return '';
  if (name.startsWith('#')) return ' (such a name is of `imports` in the nearest package.json)';
  if (name.startsWith('node:') || OF_NODE.has(name.split('/')[0])) {
    return ' (it is a module of Node.js, and plugins run in a sandbox without files, processes and sockets: `fetch`, `crypto` and the module `noetl` are there)';
  }
  return ` (a plugin brings its libraries: put it below vendor/${name})`;
}

/** `node_modules` beside a file and above it, the nearest first. */
function around(from) {
  const parts = from.split('/').slice(0, -1);
  return parts.map((_, at) => `${parts.slice(0, parts.length - at).join('/')}/node_modules/`);
}

/** A name that a package gives to its own files, or to other packages: `imports` of the `package.json` nearest to the file. */
function own(name, from, files) {
  const folders = from.split('/').slice(0, -1);
  while (folders.length > 0 && files.about(folders.join('/')) === undefined) folders.pop();
  const folder = folders.join('/');
  const said = files.about(folder)?.imports;
  if (said === null || typeof said !== 'object') return undefined;
  return listed(said, name, (path) => {
    if (!path.startsWith('./')) return path.startsWith('#') ? undefined : find(path, from, files);
    const file = join(folder === '' ? 'package.json' : `${folder}/package.json`, path);
    return files.is(file) ? file : undefined;
  });
}

function fileOrFolder(path, files) {
  return ENDINGS.map((ending) => path + ending).find(files.is) ?? folderOf(path, files);
}

function folderOf(folder, { is, about }) {
  const { main, module } = about(folder) ?? {};
  for (const said of [main, module].filter((said) => typeof said === 'string')) {
    const begins = join(`${folder}/package.json`, said);
    const found = [...ENDINGS.map((ending) => begins + ending), ...INDEXES.map((name) => `${begins}/${name}`)].find(is);
    if (found !== undefined) return found;
  }
  return INDEXES.map((name) => `${folder}/${name}`).find(is);
}

/** What a library's `exports` say about a name in it. One that they do not list is looked for as a file: there are
 * libraries whose users do so. */
function exported(folder, name, { is, about }) {
  const said = about(folder)?.exports;
  if (said === undefined || said === null) return undefined;
  const names = typeof said === 'object' && !Array.isArray(said) && Object.keys(said).some((key) => key.startsWith('.')) ? said : { '.': said };
  return listed(names, name, (path) => {
    const file = join(`${folder}/package.json`, path);
    return is(file) ? file : undefined;
  });
}

/** The first that leads somewhere of the paths that are listed for a name. */
function listed(names, name, lead) {
  for (const [target, middle] of targets(names, name)) {
    for (const conditions of CONDITIONS) {
      const path = chosen(target, conditions);
      const found = path === undefined ? undefined : lead(path.replaceAll('*', () => middle));
      if (found !== undefined) return found;
    }
  }
  return undefined;
}

/** What is listed under a name, then under patterns that fit it, the longest first. */
function targets(names, name) {
  const fitting = [];
  for (const [key, target] of Object.entries(names)) {
    const [before, after] = key.split('*');
    const fits = after !== undefined && name.startsWith(before) && name.endsWith(after) && name.length >= key.length;
    if (fits) fitting.push([key, target, name.slice(before.length, name.length - after.length)]);
  }
  fitting.sort(([one], [other]) => other.length - one.length);
  const listed = Object.hasOwn(names, name) ? [[names[name], '']] : [];
  return [...listed, ...fitting.map(([, target, middle]) => [target, middle])];
}

function chosen(target, conditions) {
  if (typeof target === 'string') return target;
  if (target === null || typeof target !== 'object') return undefined;
  const inside = Array.isArray(target)
    ? target
    : Object.entries(target).filter(([condition]) => conditions.includes(condition)).map(([, inside]) => inside);
  for (const one of inside) {
    const path = chosen(one, conditions);
    if (path !== undefined) return path;
  }
  return undefined;
}

/** A path as a file writes it, from the plugin's folder on. */
export function join(from, relative) {
  const parts = from.split('/').slice(0, -1);
  for (const part of relative.split('/')) {
    if (part === '..') parts.pop();
    else if (part !== '.' && part !== '') parts.push(part);
  }
  return parts.join('/');
}
