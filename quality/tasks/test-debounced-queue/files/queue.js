// Items leave in the order of their priority (the highest first), equal ones in the order of their arrival.
class Queue {
  constructor(limit) {
    this.limit = limit;
    this.items = [];
  }

  add(item, priority = 0) {
    if (this.items.length >= this.limit) throw new RangeError("full");
    const at = this.items.findIndex((other) => other.priority < priority);
    this.items.splice(at < 0 ? this.items.length : at, 0, { item, priority });
  }

  next() {
    return this.items.shift()?.item;
  }
}

module.exports = { Queue };
