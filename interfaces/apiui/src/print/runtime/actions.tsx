// ---- Actions: buttons that call an operation with constants, for one item or the selected rows ----

import { useState } from "react";
import { PLAN } from "../plan";
import { buildCall, startDrafts, stillMissing } from "./calls";
import { fieldsOf } from "./drafts";
import { VERSION_FIELD, patchSteps } from "./edits";
import { provenFor } from "./guards";
import { unknownKeys } from "./item-screen";
import { Button } from "./parts";
import { isAllowed } from "./resource-screen";
import { own, withOwn } from "./vetted";
import type { Action, Call, Data, Operation, Resource, Ui, Values } from "./types";

/** The actions of a view that may be called at all. */
export function actionsOf(resource: Resource): Action[] {
  return (resource.list?.actions ?? []).filter((action) => isAllowed(action.operation));
}

/** The call of an action for one item; undefined where a key is not certain or something else is missing. */
export function actionCall(
  ui: Ui,
  resource: Resource,
  action: Action,
  known: Values | undefined,
  item: Data,
): { operation: Operation; sent: Call } | undefined {
  const operation = PLAN.operations.at(action.operation);
  if (unknownKeys(resource, known).length > 0) return undefined;
  const proven = provenFor(resource, action.operation, known, true);
  const place = (operation.record ?? []).map((name) => `${name}.`).join("");
  const variables = (action.constants ?? []).map((one) => [`${place}${one.field}`, one.value]);
  const given =
    operation.queryText === undefined
      ? proven
      : variables.reduce((all: Values, [name, value]) => withOwn(all, name, value), proven);
  const drafts = startDrafts(operation, given);
  if (stillMissing(ui, operation, drafts).length > 0) return undefined;
  return { operation, sent: buildCall(operation, drafts, actionBody(operation, action, item)) };
}

/** The constants as a body; a patch carries the version that the row was loaded with. */
export function actionBody(operation: Operation, action: Action, item: Data): Data {
  if (operation.body === undefined) return undefined;
  const sent = (action.constants ?? []).reduce((all: Values, one) => withOwn(all, one.field, one.value), {});
  if (/json-patch/.test(operation.body.contentType)) return patchSteps({}, sent, sent);
  if (operation.method !== "PATCH") return sent;
  const versions = fieldsOf(operation.body.input).filter(
    (field) => field.required === true && VERSION_FIELD.test(field.name) && own(item, field.name) !== undefined,
  );
  return versions.reduce((all, field) => withOwn(all, field.name, own(item, field.name)), sent);
}

/** One button for each action; a press asks, and only the answer calls. */
export function ActionButtons({
  ui,
  resource,
  items,
  subject,
  whenDone,
}: {
  ui: Ui;
  resource: Resource;
  items: { item: Data; known: Values | undefined }[];
  /** What the question names. */
  subject: string;
  whenDone: () => void;
}) {
  const [asked, setAsked] = useState<Action>();
  const [done, setDone] = useState<number>();
  const callsOf = (action: Action) => items.map((one) => actionCall(ui, resource, action, one.known, one.item));
  const possible = actionsOf(resource).filter((action) => callsOf(action).every((call) => call !== undefined));
  const run = async (action: Action) => {
    let failed = 0;
    let reason = "";
    for (const [index, call] of callsOf(action).entries()) {
      setDone(index);
      const state = await ui.perform(call!.operation, call!.sent, new AbortController());
      if (state.phase === "done") continue;
      failed += 1;
      reason = state.message || `The API answered ${state.status}.`;
    }
    setDone(undefined);
    setAsked(undefined);
    ui.tell(
      failed === 0
        ? `${action.title}: done for ${subject}.`
        : `${items.length - failed} done, ${failed} not: ${reason}`,
    );
    whenDone();
  };
  if (possible.length === 0) return null;
  if (asked !== undefined)
    return (
      <div className="dragoman-confirm" role="alertdialog" aria-label="Confirm">
        <span className="dragoman-grow" role="status">
          {done === undefined ? `${asked.title}: ${subject}?` : `${done + 1} of ${items.length}…`}
        </span>
        <Button
          label={asked.title}
          kind={PLAN.operations.at(asked.operation).destroys === true ? "danger" : "primary"}
          isBusy={done !== undefined}
          signature={PLAN.operations.at(asked.operation).signature}
          whenPressed={() => run(asked)}
        />
        <Button label="Cancel" isBusy={done !== undefined} whenPressed={() => setAsked(undefined)} />
      </div>
    );
  return (
    <div className="dragoman-actions" role="group" aria-label="Actions" data-testid="actions">
      {possible.map((action) => (
        <Button key={action.title} label={action.title} isSmall whenPressed={() => setAsked(action)} />
      ))}
    </div>
  );
}
