export const stored = new Map();

const info = (key) => {
  const content = stored.get(key);
  return { key, size: content.size(), digest: content.digest(), mediaType: content.mediaType() };
};
export const open = (key) => stored.get(key);
export function put(key, content) {
  stored.set(key, content);
  return info(key);
}
const remove = (key) => void stored.delete(key);
export { remove as delete };
export const listObjects = (prefix, after) =>
  [...stored.keys()]
    .sort()
    .filter((key) => key.startsWith(prefix) && (after === undefined || key > after))
    .slice(0, 2)
    .map(info);
