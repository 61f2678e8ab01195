// ---- Screens: a resource, one of its items, a form, an operation ----

import { Fragment, useState } from "react";
import type { ReactNode } from "react";
import { PLAN } from "../plan";
import { inputKey, inputProblems, startDrafts } from "./calls";
import { Field } from "./fields";
import { ItemList } from "./list";
import { Markdown } from "./markdown";
import { knownValues } from "./paging";
import { Button } from "./parts";
import { inText, textOf } from "./values";
import { exactJsonText, own, withAll, withOwn } from "./vetted";
import type { Data, ListedResource, Page, Problem, Resource, Ui, Values } from "./types";

export function resourceOf(id: string | undefined): Resource {
  return PLAN.resources.find((resource) => resource.id === id)!;
}

export function isAllowed(index: number | undefined) {
  return index !== undefined && !(PLAN.viewOnly === true && PLAN.operations.at(index).writes === true);
}

export function Crumbs({ ui, pages }: { ui: Ui; pages: Page[] }) {
  if (pages.length < 2) return null;
  return (
    <nav className="dragoman-crumbs" aria-label="Where you are">
      {pages.slice(0, -1).map((page, index) => (
        <Fragment key={index}>
          <button type="button" onClick={() => ui.goTo(page)}>
            {pageTitle(page)}
          </button>
          <span aria-hidden="true">/</span>
        </Fragment>
      ))}
      <span>{pageTitle(pages[pages.length - 1])}</span>
    </nav>
  );
}

export function pageTitle(page: Page) {
  const resource = page.resource === undefined ? undefined : resourceOf(page.resource);
  if (page.kind === "item") return page.item === undefined ? resource!.singular : itemTitle(resource!, page.item);
  if (page.kind === "form") return PLAN.operations.at(page.operation).title;
  if (page.kind === "incoming") return "Webhooks";
  return resource === undefined ? "Overview" : resource.title;
}

export function itemTitle(resource: Resource, item: Data) {
  const text = textOf(item);
  return text === "" || text.startsWith("{") ? resource.singular : text;
}

export function PageHead({ title, note, children }: { title: string; note?: string; children?: ReactNode }) {
  return (
    <header className="dragoman-head">
      <div className="dragoman-grow">
        <h1 dir="auto">{title}</h1>
        {note ? <Markdown text={note} /> : null}
      </div>
      <div className="dragoman-actions">{children}</div>
    </header>
  );
}

/** The screen of a resource: its list, and every operation it has (the children). */
export function ResourceScreen({
  ui,
  id,
  known,
  children,
}: {
  ui: Ui;
  id: string;
  known?: Values;
  children?: ReactNode;
}) {
  const resource = resourceOf(id);
  const operation = resource.list === undefined ? undefined : PLAN.operations.at(resource.list.operation);
  return (
    <>
      <PageHead title={resource.title} note={resource.note}>
        {operation === undefined ? null : (
          <Button label="Refresh" signature={operation.signature} whenPressed={() => ui.refresh()} />
        )}
        {isAllowed(resource.creates) ? (
          <Button
            label={`New ${inText(resource.singular)}`}
            kind="primary"
            signature={PLAN.operations.at(resource.creates).signature}
            whenPressed={() => ui.goTo({ kind: "form", resource: resource.id, operation: resource.creates, known })}
          />
        ) : null}
      </PageHead>
      {operation === undefined && resource.detail !== undefined ? (
        <Lookup ui={ui} resource={resource as ListedResource} known={known} />
      ) : null}
      {operation === undefined ? null : (
        <ItemList key={exactJsonText(known ?? {})} ui={ui} resource={resource as ListedResource} known={known} />
      )}
      <section className="dragoman-panel" aria-label="Operations">
        <h2 className="dragoman-title">{operation === undefined ? "Operations" : "All operations"}</h2>
        <div className="dragoman-operations">{children}</div>
      </section>
    </>
  );
}

/** Where there is no list, an item is opened by its key. */
export function Lookup({ ui, resource, known }: { ui: Ui; resource: Resource; known?: Values }) {
  const operation = PLAN.operations.at(resource.detail);
  const [drafts, setDrafts] = useState(() => startDrafts(operation, known ?? {}));
  const [problems, setProblems] = useState<Problem[]>([]);
  const inputs = (operation.inputs ?? []).filter(
    (input) => input.required === true || ["path", "variable"].includes(input.place ?? ""),
  );
  const open = () => {
    const found = inputs.flatMap((input) => inputProblems(input, own(drafts, inputKey(input))));
    setProblems(found);
    if (found.length === 0)
      ui.goTo({ kind: "item", resource: resource.id, item: undefined, known: knownValues(operation, drafts, true) });
  };
  return (
    <form
      className="dragoman-panel dragoman-toolbar"
      noValidate
      role="search"
      aria-label={`Open ${inText(resource.singular)}`}
      onSubmit={(event) => {
        event.preventDefault();
        open();
      }}
    >
      {inputs.map((input) => (
        <Field
          key={inputKey(input)}
          input={withAll(input, { note: undefined, bare: true })}
          draft={own(drafts, inputKey(input))}
          place={inputKey(input)}
          problems={problems}
          whenChanged={(next) => setDrafts(withOwn(drafts, inputKey(input), next))}
        />
      ))}
      <Button label={`Open ${inText(resource.singular)}`} submits signature={operation.signature} />
    </form>
  );
}
