// ---- A tree: any value, opened step by step ----

import { useState } from "react";
import { Button } from "./parts";
import { isNested } from "./values";
import { exactJsonText, ownEntries } from "./vetted";
import type { Data } from "./types";

/** How many entries are shown at a time. */
export const TREE_STEP = 100;

export function TreeView({ value }: { value: Data }) {
  return (
    <div className="dragoman-tree dragoman-code">
      <TreeNode value={value} depth={0} />
    </div>
  );
}

export function TreeNode({ name, value, depth }: { name?: string; value: Data; depth: number }) {
  const [isOpen, setIsOpen] = useState(depth < 2);
  const [limit, setLimit] = useState(TREE_STEP);
  const key = name === undefined ? null : <span className="dragoman-treekey">{`${name}: `}</span>;
  if (!isNested(value))
    return (
      <div>
        {key}
        <bdi>{exactJsonText(value) ?? "undefined"}</bdi>
      </div>
    );
  const isList = Array.isArray(value);
  const pairs: [string, Data][] = isList ? value.map((one, index) => [String(index), one]) : ownEntries(value);
  const counted = `${pairs.length} ${pairs.length === 1 ? "entry" : "entries"}`;
  return (
    <details open={isOpen} onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>
        {key}
        <span className="dragoman-hint">{isList ? `[ ${counted} ]` : `{ ${counted} }`}</span>
      </summary>
      {isOpen ? (
        <div className="dragoman-branch">
          {pairs.slice(0, limit).map(([inner, one]) => (
            <TreeNode key={inner} name={inner} value={one} depth={depth + 1} />
          ))}
          {pairs.length > limit ? (
            <Button
              label={`${pairs.length - limit} more`}
              kind="quiet"
              isSmall
              whenPressed={() => setLimit(limit + TREE_STEP)}
            />
          ) : null}
        </div>
      ) : null}
    </details>
  );
}
