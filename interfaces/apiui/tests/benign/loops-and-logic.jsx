import { useMemo } from "react";

function primes(limit) {
  const found = [];
  for (let candidate = 2; candidate <= limit; candidate++) {
    let prime = true;
    for (const known of found) {
      if (known * known > candidate) break;
      if (candidate % known === 0) {
        prime = false;
        break;
      }
    }
    if (!prime) continue;
    found.push(candidate);
  }
  return found;
}

function pairs(list) {
  const out = [];
  for (let i = 1; i < list.length; i += 1) {
    out.push(`${list[i - 1]}-${list[i]}`);
  }
  let last = list.length;
  while (last > 0) last -= 1;
  do { last += 1; } while (last < 1);
  return out;
}

export default function App({ limit = 30 }) {
  const list = useMemo(() => primes(limit), [limit]);
  const [first, second, ...others] = list;
  const { length } = others;
  const total = list.reduce((sum, prime) => sum + prime, 0);
  const label = total > 100 ? "large" : total > 10 ? "middling" : "small";
  return <p title={label}>{first}, {second} and {length} more: {pairs(list).join(" ")}</p>;
}
