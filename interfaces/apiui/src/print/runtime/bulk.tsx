// ---- Several rows at once: chosen, saved, deleted after a question ----

import { useState } from "react";
import { PLAN } from "../plan";
import { ActionButtons } from "./actions";
import { keysOf } from "./browser";
import { buildCall, startDrafts, stillMissing } from "./calls";
import { valueOf } from "./drafts";
import { startBody } from "./edits";
import { csvOf } from "./files";
import { provenFor } from "./guards";
import { recordTitle, unknownKeys } from "./item-screen";
import { Button } from "./parts";
import { isAllowed, itemTitle } from "./resource-screen";
import { cellOf, cellText } from "./showing";
import { inText } from "./values";
import { exactJsonText, withAll } from "./vetted";
import type { Call, Column, Data, ListedResource, Operation, Resource, Ui, Values } from "./types";

/** How many records a question names. */
export const MOST_NAMED = 8;

/** The call that deletes an item; undefined where a key is not certain or something else is missing. */
export function deletionOf(
  ui: Ui,
  resource: Resource,
  known: Values | undefined,
  item: Data,
): { operation: Operation; sent: Call } | undefined {
  if (!isAllowed(resource.deletes) || unknownKeys(resource, known).length > 0) return undefined;
  const operation = PLAN.operations.at(resource.deletes);
  const drafts = startDrafts(operation, provenFor(resource, resource.deletes, known, true));
  if (stillMissing(ui, operation, drafts).length > 0) return undefined;
  const body =
    operation.body?.required === true ? valueOf(operation.body.input, startBody(operation, item)) : undefined;
  return { operation, sent: buildCall(operation, drafts, body) };
}

/** What an item is told apart by among the rows. */
export function rowMark(ui: Ui, resource: Resource, known: Values | undefined, item: Data) {
  return exactJsonText(withAll(known, keysOf(ui, resource, item)));
}

export function BulkBar({
  ui,
  resource,
  columns,
  items,
  known,
  whenCleared,
}: {
  ui: Ui;
  resource: ListedResource;
  columns: Column[];
  items: Data[];
  known: Values | undefined;
  whenCleared: () => void;
}) {
  const [isAsking, setIsAsking] = useState(false);
  const [done, setDone] = useState<number>();
  const { saveFile } = ui.tools;
  const deletions = items.map((item) => deletionOf(ui, resource, withAll(known, keysOf(ui, resource, item)), item));
  const canDelete = isAllowed(resource.deletes) && deletions.every((one) => one !== undefined);
  const titles = items.slice(0, MOST_NAMED).map((item) => {
    const title = itemTitle(resource, item);
    return title === resource.singular ? recordTitle(resource, item, keysOf(ui, resource, item)) : title;
  });
  const names = `${titles.join(", ")}${items.length > MOST_NAMED ? ` and ${items.length - MOST_NAMED} more` : ""}`;
  const many = `${items.length} ${inText(items.length === 1 ? resource.singular : resource.title)}`;
  const run = async () => {
    let failed = 0;
    let reason = "";
    for (const [index, deletion] of deletions.entries()) {
      setDone(index);
      const state = await ui.perform(deletion!.operation, deletion!.sent, new AbortController());
      if (state.phase === "done") continue;
      failed += 1;
      reason = state.message || `The API answered ${state.status}.`;
    }
    setDone(undefined);
    setIsAsking(false);
    ui.tell(failed === 0 ? `${many} deleted.` : `${items.length - failed} deleted, ${failed} not: ${reason}`);
    whenCleared();
    ui.refresh();
  };
  const save = () => {
    const rows = items.map((item) => columns.map((column) => cellText(column, cellOf(column, item))));
    saveFile?.(
      csvOf(
        columns.map((column) => column.label),
        rows,
      ),
      `${resource.title.toLowerCase()}.csv`,
      "text/csv",
    );
  };
  return (
    <div
      className={isAsking ? "dragoman-confirm" : "dragoman-confirm dragoman-ask"}
      role={isAsking ? "alertdialog" : "group"}
      aria-label="Selected rows"
    >
      <span className="dragoman-grow" role="status">
        {done !== undefined
          ? `Deleting ${done + 1} of ${items.length}…`
          : isAsking
            ? `Delete ${many}: ${names}? This cannot be undone.`
            : `${many} selected`}
      </span>
      {isAsking ? (
        <>
          <Button
            label={`Delete ${items.length}`}
            kind="danger"
            isBusy={done !== undefined}
            whenPressed={() => run()}
          />
          <Button label="Keep" isBusy={done !== undefined} whenPressed={() => setIsAsking(false)} />
        </>
      ) : (
        <>
          <ActionButtons
            ui={ui}
            resource={resource}
            items={items.map((item) => ({ item, known: withAll(known, keysOf(ui, resource, item)) }))}
            subject={items.length === 1 ? names : `${many} (${names})`}
            whenDone={() => {
              whenCleared();
              ui.refresh();
            }}
          />
          {canDelete ? <Button label="Delete…" kind="danger" isSmall whenPressed={() => setIsAsking(true)} /> : null}
          {saveFile === undefined ? null : <Button label="Save as CSV" isSmall whenPressed={() => save()} />}
          <Button label="Clear selection" kind="quiet" isSmall whenPressed={() => whenCleared()} />
        </>
      )}
    </div>
  );
}
