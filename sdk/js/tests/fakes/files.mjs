import { HostError } from './error.mjs';

export const stored = new Map();

export function read(path) {
  if (!stored.has(path)) throw new HostError('not-found', path);
  return stored.get(path);
}
