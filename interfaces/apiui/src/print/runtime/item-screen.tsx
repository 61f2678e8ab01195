// ---- An item: its fields, what can be done with it, where it leads ----

import { Fragment, useId, useState } from "react";
import { PLAN } from "../plan";
import { ActionButtons } from "./actions";
import { isKeyValue, keysOf } from "./browser";
import { deletionOf } from "./bulk";
import { buildCall, startDrafts, stillMissing } from "./calls";
import { DataView, ShownValue } from "./data";
import { knownPathNames } from "./edit-screen";
import { FileView, isFile } from "./files";
import { isRelated, provenFor, takesKey } from "./guards";
import { OperationEntry } from "./operation";
import { OperationForm } from "./operation-form";
import { Button, FailureState, LoadingState } from "./parts";
import { ReferenceLink, relationOf } from "./reference";
import { PageHead, isAllowed, itemTitle, resourceOf } from "./resource-screen";
import { useAnswer } from "./sending";
import { ItemSlot } from "./slots";
import { fieldOf, inText, isNested, labelOf, textOf, wholeItem } from "./values";
import { own, ownEntries, withAll, withOwn } from "./vetted";
import type { CallState, Data, Page, Relation, Resource, Ui, Values } from "./types";

/** One item: its fields, what can be done with it, and where it leads. */
export function ItemScreen({ ui, page }: { ui: Ui; page: Page }) {
  const resource = resourceOf(page.resource);
  const [isAsking, setIsAsking] = useState(false);
  const operation = resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail);
  const drafts = operation === undefined ? {} : startDrafts(operation, page.known);
  const missing = operation === undefined ? [] : stillMissing(ui, operation, drafts);
  const isReady = operation !== undefined && missing.length === 0;
  const state = useAnswer(
    ui,
    operation ?? PLAN.operations.at(0),
    isReady ? buildCall(operation, drafts, undefined) : undefined,
    ui.turn,
  );
  const item = state.phase === "done" ? wholeItem(state.result) : page.item;
  // What an item of the graph says about itself is its own; an item of a path may come in an envelope.
  const isTold = operation?.queryText !== undefined && state.phase === "done";
  const known = isTold ? withAll(keysOf(ui, resource, item), page.known) : page.known;
  const unknown = unknownKeys(resource, known);
  const others = resource.operations.filter(
    (index) =>
      ![resource.detail, resource.edits, resource.deletes, resource.creates, resource.list?.operation].includes(index),
  );
  const related = others.filter((index) => isRelated(resource, index, known));
  return (
    <>
      <PageHead title={itemTitle(resource, item ?? page.item)} note={resource.singular}>
        {operation === undefined ? null : (
          <Button label="Refresh" signature={operation.signature} whenPressed={() => ui.refresh()} />
        )}
        {isAllowed(resource.edits) && unknown.length === 0 ? (
          <Button
            label="Edit"
            signature={PLAN.operations.at(resource.edits).signature}
            whenPressed={() =>
              ui.goTo({
                kind: "form",
                resource: resource.id,
                operation: resource.edits,
                known,
                item: page.item,
              })
            }
          />
        ) : null}
        {isAllowed(resource.deletes) && unknown.length === 0 ? (
          <Button
            label="Delete"
            kind="danger"
            signature={PLAN.operations.at(resource.deletes).signature}
            whenPressed={() => setIsAsking(true)}
          />
        ) : null}
      </PageHead>
      {item === undefined ? null : (
        <ActionButtons
          ui={ui}
          resource={resource}
          items={[{ item, known }]}
          subject={recordTitle(resource, item, known)}
          whenDone={() => ui.refresh()}
        />
      )}
      {isAsking ? (
        <DeleteQuestion
          ui={ui}
          resource={resource}
          known={known}
          item={item ?? page.item}
          whenClosed={() => setIsAsking(false)}
        />
      ) : null}
      {unknown.length > 0 && isNested(page.item) ? (
        <KeyQuestion ui={ui} resource={resource} page={page} parameters={unknown} />
      ) : null}
      <section className="dragoman-panel dragoman-padded" aria-label="Details">
        {isReady && state.phase === "loading" ? <LoadingState /> : null}
        {missing.length > 0 && unknown.length === 0 ? (
          <p className="dragoman-hint" data-testid="missing">
            {`${missing.map((input) => labelOf(input.name)).join(", ")} ${missing.length === 1 ? "is" : "are"} required to load all of it. Open it from its list, or add what is a header under “Connection”.`}
          </p>
        ) : null}
        {state.phase === "failed" ? (
          <FailureState ui={ui} operation={operation!} state={state} whenRetried={() => ui.refresh()} />
        ) : null}
        {state.phase === "done" && isFile(state) ? <FileView ui={ui} state={state} /> : null}
        {item === undefined || (isReady && state.phase !== "done") || isFile(state) ? null : (
          <ItemFields ui={ui} resource={resource} item={item} />
        )}
      </section>
      <ItemSlot ui={ui} resource={resource} item={item} />
      <RelationLinks ui={ui} resource={resource} item={item} known={known} />
      {related.length === 0 ? null : (
        <section className="dragoman-panel" aria-label="More operations">
          <h2 className="dragoman-title">More operations</h2>
          <div className="dragoman-operations">
            {related.map((index) => (
              <OperationEntry
                key={index}
                ui={ui}
                number={index}
                known={provenFor(resource, index, known, true)}
                isProven
                subject={recordTitle(resource, item ?? page.item, known)}
                data-operation={PLAN.operations.at(index).signature}
              />
            ))}
          </div>
        </section>
      )}
    </>
  );
}

/** An item in words: what it is, what it is called, and its keys. */
export function recordTitle(resource: Resource, item: Data, known: Values | undefined) {
  const title = itemTitle(resource, item);
  const keys = (resource.keys ?? []).map((key) => key.parameter);
  const pairs = ownEntries(known).filter(([name]) => keys.length === 0 || keys.includes(name));
  const values = [...new Set(pairs.map(([, value]) => textOf(value)))].filter((text) => text !== title);
  const name = title === resource.singular ? "" : ` “${title}”`;
  const noun = inText(resource.singular);
  if (name === "" && values.length === 0) return `this ${noun}`;
  return `${noun}${name}${values.length === 0 ? "" : ` (${values.join(", ")})`}`;
}

/** The parameters that name one item and whose values are not known for certain. */
export function unknownKeys(resource: Resource, known: Values | undefined) {
  const parameters = (resource.keys ?? []).map((key) => key.parameter);
  const names = [resource.detail, resource.edits, resource.deletes].flatMap((index) => {
    if (index === undefined) return [];
    const operation = PLAN.operations.at(index);
    const plain = (operation.inputs ?? []).filter(
      (input) =>
        input.place === "path" ||
        (["variable", "query"].includes(input.place ?? "query") &&
          (input.required === true || index !== resource.detail) &&
          input.kind !== "object" &&
          parameters.includes(input.name)),
    );
    const nested = parameters.filter((name) => name.includes(".") && takesKey(operation, name));
    return [...plain.map((input) => input.name), ...nested];
  });
  return [...new Set(names)].filter((name) => !isKeyValue(own(known, name)));
}

/** Where the specification does not say which field identifies an item, the reader does, once. */
export function KeyQuestion({
  ui,
  resource,
  page,
  parameters,
}: {
  ui: Ui;
  resource: Resource;
  page: Page;
  parameters: string[];
}) {
  const parameter = parameters[0];
  const id = useId();
  const guess = (resource.keys ?? []).find((key) => key.parameter === parameter)?.field;
  const fields = scalarFields(page.item);
  const [chosen, setChosen] = useState(fields.some(([name]) => name === guess) ? guess : (fields.at(0)?.at(0) ?? ""));
  if (fields.length === 0) return null;
  return (
    <form
      className="dragoman-confirm dragoman-ask"
      aria-label="Choose the key"
      onSubmit={(event) => {
        event.preventDefault();
        ui.chooseKey(resource, parameter, chosen ?? "", page);
      }}
    >
      <span className="dragoman-grow">{`The specification does not say which field of ${inText(resource.title)} is “${parameter}”. Choose it once; nothing is opened, changed or deleted before.`}</span>
      <label className="dragoman-hidden" htmlFor={id}>
        Field
      </label>
      <select
        id={id}
        className="dragoman-input dragoman-server"
        value={chosen}
        data-testid="key-field"
        onChange={(event) => setChosen(event.target.value)}
      >
        {fields.map(([name, value]) => (
          <option key={name} value={name}>
            {`${name}: ${textOf(value)}`}
          </option>
        ))}
      </select>
      <Button label="Use this field" kind="primary" submits />
    </form>
  );
}

/** The fields of an item that can be a key, with their values; one level into objects. */
export function scalarFields(item: Data) {
  return ownEntries(item).flatMap(([name, value]) => {
    if (isKeyValue(value)) return [[name, value]];
    return isNested(value) && !Array.isArray(value)
      ? ownEntries(value)
          .filter(([, inner]) => isKeyValue(inner))
          .map(([inner, found]) => [`${name}.${inner}`, found])
      : [];
  });
}

export function ItemFields({ ui, resource, item }: { ui: Ui; resource: Resource; item: Data }) {
  if (!isNested(item) || Array.isArray(item) || item instanceof Blob) return <DataView value={item} depth={0} />;
  const columns = (resource.list?.columns ?? []).filter((column) => own(item, column.field) !== undefined);
  const known = columns.map((column) => column.field);
  const rest = ownEntries(item).filter(([name]) => !known.includes(name));
  return (
    <dl className="dragoman-pairs">
      {columns.map((column) => (
        <Fragment key={column.field}>
          <dt>{column.label}</dt>
          <dd>
            {leadsElsewhere(resource, item, column.field) ? (
              <ReferenceLink
                ui={ui}
                resource={relationOf(resource, column.field)!.resource}
                parameter={relationOf(resource, column.field)!.parameter}
                value={own(item, column.field)}
              />
            ) : ["object", "list"].includes(column.display) ? (
              <DataView value={own(item, column.field)} depth={1} />
            ) : (
              <ShownValue column={column} value={own(item, column.field)} />
            )}
          </dd>
        </Fragment>
      ))}
      {rest.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{labelOf(name)}</dt>
          <dd>
            <DataView value={value} depth={1} field={name} />
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** Whether a field holds the key of another item. */
export function leadsElsewhere(resource: Resource, item: Data, field: string) {
  return relationOf(resource, field) !== undefined && isKeyValue(own(item, field));
}

export function RelationLinks({
  ui,
  resource,
  item,
  known,
}: {
  ui: Ui;
  resource: Resource;
  item: Data;
  known: Values | undefined;
}) {
  const links = (resource.relations ?? []).flatMap(
    (relation): { relation: Relation; target: Resource; page: Page }[] => {
      const target = PLAN.resources.at(relation.resource);
      if (target.removed === true) return [];
      if (relation.field === undefined)
        return [
          {
            relation,
            target,
            page: {
              kind: "resource",
              resource: target.id,
              known: provenFor(target, target.list?.operation, known, false),
            },
          },
        ];
      const value = fieldOf(item, relation.field);
      if (!isKeyValue(value)) return [];
      return [
        {
          relation,
          target,
          page: { kind: "item", resource: target.id, item: undefined, known: withOwn({}, relation.parameter, value) },
        },
      ];
    },
  );
  if (links.length === 0) return null;
  return (
    <section className="dragoman-panel dragoman-padded" aria-label="Related">
      <div className="dragoman-actions">
        {links.map((link, index) => (
          <Button key={index} label={`${link.relation.label} →`} whenPressed={() => ui.goTo(link.page)} />
        ))}
      </div>
    </section>
  );
}

export function DeleteQuestion({
  ui,
  resource,
  known,
  item,
  whenClosed,
}: {
  ui: Ui;
  resource: Resource;
  known: Values | undefined;
  item: Data;
  whenClosed: () => void;
}) {
  const operation = PLAN.operations.at(resource.deletes);
  const [state, setState] = useState<CallState>({ phase: "waiting" });
  const proven = provenFor(resource, resource.deletes, known, true);
  const missing = stillMissing(ui, operation, startDrafts(operation, proven));
  const deletion = deletionOf(ui, resource, known, item);
  const subject = recordTitle(resource, item, proven);
  const finish = () => {
    ui.tell(`${resource.singular} deleted.`);
    ui.goBack();
  };
  const run = () => {
    if (deletion === undefined) return;
    setState({ phase: "loading" });
    ui.perform(operation, deletion.sent, new AbortController()).then((next) => {
      setState(next);
      if (next.phase === "done") finish();
    });
  };
  if (missing.length > 0)
    return (
      <section className="dragoman-panel dragoman-padded" aria-label="Deletion">
        <p>{`To delete ${subject}, the API asks for more.`}</p>
        <OperationForm
          ui={ui}
          operation={operation}
          known={proven}
          hides={knownPathNames(operation, proven)}
          label="Delete…"
          subject={subject}
          isPlain
          whenCancelled={() => whenClosed()}
          whenDone={() => finish()}
        />
      </section>
    );
  return (
    <div className="dragoman-confirm" role="alertdialog" aria-label="Confirm deletion">
      <span className="dragoman-grow">{`Delete ${subject}? This cannot be undone.`}</span>
      {deletion === undefined ? null : (
        <Button
          label={state.phase === "loading" ? "Deleting…" : "Delete"}
          kind="danger"
          isBusy={state.phase === "loading"}
          signature={operation.signature}
          whenPressed={() => run()}
        />
      )}
      <Button label="Keep" whenPressed={() => whenClosed()} />
      {state.phase === "failed" ? (
        <span className="dragoman-problem" role="alert">
          {state.message || `The API answered ${state.status}.`}
        </span>
      ) : null}
    </div>
  );
}
