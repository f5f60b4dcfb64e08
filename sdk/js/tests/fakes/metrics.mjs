export const numbers = [];
export const counterAdd = (...number) => void numbers.push(number);
export const gaugeSet = (...number) => void numbers.push(number);
