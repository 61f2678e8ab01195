// What every flow waits with.

/** Long enough for a machine that is ten times slower: a wait ends when what it waits for is there. */
export const WAIT = 90_000;

export function expect(truth, sentence) {
  if (!truth) throw new Error(sentence);
}

/** Asks again until the answer is yes. */
export async function until(question, sentence, wait = WAIT) {
  const end = Date.now() + wait;
  while (!(await question())) {
    if (Date.now() > end) throw new Error(sentence);
    await new Promise((done) => setTimeout(done, 50));
  }
}
