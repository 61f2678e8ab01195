function groupBy(items, key) {
  const keyOf = typeof key === "function" ? key : (item) => item[key];
  const groups = new Map();
  for (const item of items) {
    const found = keyOf(item);
    if (!groups.has(found)) groups.set(found, []);
    groups.get(found).push(item);
  }
  return groups;
}

module.exports = { groupBy };
