// JSON as a tree that keeps the text of each number: objects are maps, numbers are `{ digits }`.

export function exactTree(text) {
  let at = 0;
  const blank = () => {
    while (/\s/.test(text[at] ?? "")) at += 1;
  };
  const word = (expression) => {
    expression.lastIndex = at;
    const [found] = expression.exec(text) ?? [];
    if (found === undefined) throw new Error(`not JSON at ${at}: ${text.slice(at, at + 40)}`);
    at += found.length;
    return found;
  };
  const list = (end, read) => {
    at += 1;
    for (blank(); text[at] !== end; blank()) {
      read();
      blank();
      if (text[at] === ",") at += 1;
    }
    at += 1;
  };
  const value = () => {
    blank();
    if (text[at] === "{") {
      const map = new Map();
      list("}", () => {
        const name = JSON.parse(word(/"(?:[^"\\]|\\.)*"/y));
        blank();
        at += 1;
        map.set(name, value());
      });
      return map;
    }
    if (text[at] === "[") {
      const items = [];
      list("]", () => items.push(value()));
      return items;
    }
    if (text[at] === '"') return JSON.parse(word(/"(?:[^"\\]|\\.)*"/y));
    const scalar = word(/true|false|null|-?[0-9][-+.0-9eE]*/y);
    return /^[tfn]/.test(scalar) ? JSON.parse(scalar) : { digits: scalar };
  };
  return value();
}

/** The order of an object's names has no meaning, and JavaScript puts those that are numbers first. */
function ordered(map) {
  const isNumber = ([name]) => /^(0|[1-9][0-9]*)$/.test(name);
  return [...[...map].filter(isNumber).sort(([a], [b]) => Number(a) - Number(b)), ...[...map].filter((pair) => !isNumber(pair))];
}

export function exactText(tree) {
  if (tree === undefined) return "absent";
  if (tree instanceof Map) return `{${ordered(tree).map(([name, value]) => `${JSON.stringify(name)}:${exactText(value)}`).join(",")}}`;
  if (Array.isArray(tree)) return `[${tree.map(exactText).join(",")}]`;
  return tree !== null && typeof tree === "object" ? tree.digits : JSON.stringify(tree);
}

export function valueAtPath(tree, path) {
  return path.reduce((value, name) => (value instanceof Map ? value.get(name) : Array.isArray(value) ? value[name] : undefined), tree);
}

/** A copy with a value set; what is on the way and absent becomes an object. */
export function withValue(tree, [name, ...rest], value) {
  const inner = rest.length === 0 ? value : withValue(valueAtPath(tree, [name]), rest, value);
  if (Array.isArray(tree)) return tree.map((one, index) => (index === name ? inner : one));
  return new Map([...(tree instanceof Map ? tree : []), [name, inner]]);
}

/** A copy without what is at a path; `*` stands for each item. */
export function without(tree, [name, ...rest]) {
  if (Array.isArray(tree)) {
    if (name === "*") return tree.map((one) => without(one, rest));
    return rest.length === 0 ? tree.filter((_, index) => index !== name) : tree.map((one, index) => (index === name ? without(one, rest) : one));
  }
  if (!(tree instanceof Map) || !tree.has(name)) return tree;
  if (rest.length > 0) return new Map([...tree].map(([key, value]) => [key, key === name ? without(value, rest) : value]));
  return new Map([...tree].filter(([key]) => key !== name));
}
