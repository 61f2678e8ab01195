// ---- Forms that create or change an item ----

import { useState } from "react";
import { PLAN } from "../plan";
import { isKeyValue } from "./browser";
import { buildCall, startDrafts, stillMissing } from "./calls";
import { fieldsOf } from "./drafts";
import { provenFor, takesKey } from "./guards";
import { OperationForm } from "./operation-form";
import { Button, FailureState, LoadingState } from "./parts";
import { PageHead, resourceOf } from "./resource-screen";
import { useAnswer } from "./sending";
import { inText, isNested, wholeItem } from "./values";
import { own, ownEntries, withAll, withOwn } from "./vetted";
import type { Data, Operation, Page, Resource, Ui, Values } from "./types";

/** A form that creates or changes an item. */
export function FormScreen({ ui, page }: { ui: Ui; page: Page }) {
  const resource = resourceOf(page.resource);
  const operation = PLAN.operations.at(page.operation);
  const isEdit = page.operation === resource.edits;
  const created = provenFor(resource, page.operation, page.known, false);
  return (
    <>
      <PageHead
        title={isEdit ? `Edit ${inText(resource.singular)}` : `New ${inText(resource.singular)}`}
        note={operation.note}
      />
      {isEdit ? (
        <EditForm ui={ui} page={page} resource={resource} operation={operation} />
      ) : (
        <section className="dragoman-panel dragoman-padded" aria-label="Form">
          <OperationForm
            ui={ui}
            operation={operation}
            known={created}
            hides={knownPathNames(operation, created).filter((name) => isPathInput(operation, name))}
            label="Create"
            isPlain
            whenCancelled={() => ui.goBack()}
            whenDone={() => {
              ui.tell(`${resource.singular} created.`);
              ui.goBack();
            }}
          />
        </section>
      )}
    </>
  );
}

export function isPathInput(operation: Operation, name: string) {
  return (operation.inputs ?? []).some((input) => input.name === name && input.place === "path");
}

/** The parameters that the page already knows: they say which item it is about, so they are not edited. */
export function knownPathNames(operation: Operation, known: Values | undefined) {
  const plain = (operation.inputs ?? [])
    .filter((input) => ["path", "variable"].includes(input.place ?? "") && isKeyValue(own(known, input.name)))
    .map((input) => input.name);
  const nested = ownEntries(known)
    .filter(([name, value]) => name.includes(".") && isKeyValue(value) && takesKey(operation, name))
    .map(([name]) => name);
  return [...plain, ...nested];
}

/** Reads the item anew, then shows a form that sends back exactly what was not touched. */
export function EditForm({
  ui,
  page,
  resource,
  operation,
}: {
  ui: Ui;
  page: Page;
  resource: Resource;
  operation: Operation;
}) {
  const detail = resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail);
  const drafts = detail === undefined ? {} : startDrafts(detail, page.known);
  const isReady = detail !== undefined && stillMissing(ui, detail, drafts).length === 0;
  const call = isReady ? buildCall(detail, drafts, undefined) : undefined;
  const [turn, setTurn] = useState(0);
  const [isAccepted, setIsAccepted] = useState(false);
  const state = useAnswer(ui, detail ?? operation, call, turn);
  if (isReady && state.phase === "loading") return <LoadingState />;
  const found = state.phase === "done" ? recordIn(operation, state.result) : undefined;
  if (state.phase === "failed" && !isAccepted) {
    return (
      <section className="dragoman-panel" aria-label="Form">
        <FailureState ui={ui} operation={detail ?? operation} state={state} whenRetried={() => setTurn(turn + 1)} />
        {isNested(page.item) ? (
          <div className="dragoman-padded">
            <Button label="Edit what the list showed" whenPressed={() => setIsAccepted(true)} />
          </div>
        ) : null}
      </section>
    );
  }
  const item = found ?? page.item;
  const reread = () =>
    ui
      .perform(detail!, call!, new AbortController())
      .then((next) => (next.phase === "done" ? recordIn(operation, next.result) : undefined));
  const proven = provenFor(resource, page.operation, page.known, true);
  const edit = {
    item: recordFields(item),
    known: proven,
    base: item,
    isWhole: found !== undefined,
    etag: found === undefined ? undefined : strongTag(state.headers),
    reread: found === undefined ? undefined : reread,
  };
  const known = withAll(graphInputs(operation, item), proven);
  return (
    <section className="dragoman-panel dragoman-padded" aria-label="Form">
      <OperationForm
        key={turn}
        ui={ui}
        operation={operation}
        known={known}
        edit={edit}
        hides={knownPathNames(operation, proven)}
        label="Save"
        isPlain
        whenCancelled={() => ui.goBack()}
        whenDone={() => {
          ui.tell(`${resource.singular} saved.`);
          ui.goBack();
        }}
      />
    </section>
  );
}

/** The object in an answer that the body of an edit is about: the whole answer, or the one that it wraps. */
export function recordIn(operation: Operation, result: Data) {
  if (operation.body === undefined) return wholeItem(result);
  const names = fieldsOf(operation.body.input).map((field) => field.name);
  const inner = wholeItem(result);
  if (names.length === 0) return isNested(inner) && !Array.isArray(inner) ? inner : undefined;
  const score = (value: Data) => names.filter((name) => own(value, name) !== undefined).length;
  const best = score(inner) > score(result) ? inner : result;
  return score(best) === 0 && names.length > 0 ? undefined : best;
}

/** The version of a record that the API gave. A weak one cannot be sent back. */
export function strongTag(headers: Values | undefined) {
  const entry = ownEntries(headers).find(([name]) => name.toLowerCase() === "etag");
  const tag = entry === undefined ? "" : String(entry.at(1));
  return tag === "" || tag.startsWith("W/") ? undefined : tag;
}

/** The fields of an item, where they may be one level down. */
export function recordFields(item: Data): Data {
  const inner = own(item, "attributes");
  return isNested(inner) && !Array.isArray(inner) ? withAll(inner, item) : item;
}

/** In GraphQL the fields of an item are variables, or the fields of one input object: the plan says which. */
export function graphInputs(operation: Operation, item: Data): Values {
  const { record } = operation;
  if (record !== undefined) {
    const fields = recordFields(item);
    const plain = (operation.inputs ?? [])
      .filter((input) => input.place === "variable" && (input.kind !== "object" || record.length === 0))
      .map((input) => [input.name, own(fields, input.name)])
      .filter((pair) => pair.at(1) !== undefined);
    const nested = record.slice(1).reduceRight((inner, name) => withOwn({}, name, inner), fields);
    return record.length === 0 ? Object.fromEntries(plain) : withOwn(Object.fromEntries(plain), record[0], nested);
  }
  const pairs = (operation.inputs ?? [])
    .filter((input) => input.place === "variable")
    .map((input) => [input.name, input.kind === "object" ? (own(item, input.name) ?? item) : own(item, input.name)]);
  return Object.fromEntries(pairs.filter((pair) => pair.at(1) !== undefined));
}
