const test = require("node:test");
const assert = require("node:assert");
const { Queue } = require("./queue");

test("order", () => {
  const queue = new Queue(5);
  queue.add("a");
  queue.add("b", 1);
  queue.add("c");
  queue.add("d", 1);
  queue.add("e", -1);
  assert.throws(() => queue.add("f"), RangeError);
  assert.deepEqual([1, 2, 3, 4, 5, 6].map(() => queue.next()), ["b", "d", "a", "c", "e", undefined]);
});
