export const bytes = (length) => new Uint8Array(length).fill(7);
export const number = () => 7n;
