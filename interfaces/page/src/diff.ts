// Lines of a difference, laid side by side.
import type { Diff } from "./types";

export interface Side {
  number: number;
  text: string;
}

export interface Pair {
  left?: Side;
  right?: Side;
  isSame: boolean;
}

/** Removed lines stand beside the added ones that take their place; the longer run goes on alone. */
export function pairLines(hunk: Diff["hunks"][number]): Pair[] {
  const pairs: Pair[] = [];
  let [left, right] = [hunk.left, hunk.right];
  let removed: Side[] = [];
  let added: Side[] = [];
  const flush = () => {
    for (let at = 0; at < Math.max(removed.length, added.length); at += 1) pairs.push({ left: removed[at], right: added[at], isSame: false });
    removed = [];
    added = [];
  };
  for (const line of hunk.lines) {
    if (line.kind === "removed") removed.push({ number: left++, text: line.text });
    else if (line.kind === "added") added.push({ number: right++, text: line.text });
    else {
      flush();
      pairs.push({ left: { number: left++, text: line.text }, right: { number: right++, text: line.text }, isSame: true });
    }
  }
  flush();
  return pairs;
}
