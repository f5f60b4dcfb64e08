import { HostError } from './error.mjs';

/** Headers by alias, as the host gives them. */
export const known = new Map();

export const placeholder = (alias, field) => `<${alias}.${field}>`;
export function headers(alias) {
  if (!known.has(alias)) throw new HostError('unknown', `no credential is called \`${alias}\``);
  return known.get(alias);
}
export function describe(alias) {
  headers(alias);
  return { kind: 'bearer', fields: [['host', 'h']] };
}
