export const lines = [];
export const write = (...line) => void lines.push(line);
