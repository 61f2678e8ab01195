import irregular from "./irregular.mjs";

export const VERSION = 1;

export function plural(count, word) {
  return `${count} ${count === 1 ? word : irregular[word] ?? word + "s"}`;
}
