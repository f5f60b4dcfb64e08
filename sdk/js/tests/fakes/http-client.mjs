export const sent = [];
export const answers = [];

export function send(request) {
  sent.push(request);
  const answer = answers.shift();
  if (answer instanceof Error) throw answer;
  return answer;
}
