// A Map from key to the items that have it, both in the order of their first appearance. `key` is a function or the name
// of a property.
function groupBy(items, key) {
  throw new Error("not written");
}

module.exports = { groupBy };
