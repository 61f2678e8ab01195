const { irregular } = require("./irregular.mjs");

export const VERSION = 1;

function plural(count, word) {
  return `${count} ${count === 1 ? word : irregular[word] ?? word + "s"}`;
}
