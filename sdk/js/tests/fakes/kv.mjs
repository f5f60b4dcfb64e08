import { HostError } from './error.mjs';

export const values = new Map();

export const get = (key) => values.get(key);
export function put(key, value) {
  if (key === '') throw new HostError('invalid-key', 'a key has 1 to 512 bytes');
  if (value.length > 1 << 20) throw new HostError('too-large', BigInt(value.length));
  values.set(key, { value, version: (values.get(key)?.version ?? 0n) + 1n });
}
const remove = (key) => void values.delete(key);
export { remove as delete };
export function compareAndSwap(key, expected, value) {
  if (values.get(key)?.version !== expected) return false;
  put(key, value);
  return true;
}
// Pages of two, so that paging is seen.
export const listKeys = (prefix, after) =>
  [...values.keys()].sort().filter((key) => key.startsWith(prefix) && (after === undefined || key > after)).slice(0, 2);
