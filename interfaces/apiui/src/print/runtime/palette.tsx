// ---- The palette: finds resources, operations and fields ----

import { useEffect, useId, useRef, useState } from "react";
import { PLAN } from "../plan";
import { fieldsOf } from "./drafts";
import { Button } from "./parts";
import { isAllowed } from "./resource-screen";
import type { Data, Operation, Resource, Ui } from "./types";

/** Everything that a resource can be found by. */
export function searchTexts(resource: Resource) {
  const columns = (resource.list?.columns ?? []).map((column) => column.field);
  const operations = resource.operations.map((index) => PLAN.operations.at(index));
  return [resource.title, resource.group ?? "", resource.note ?? "", ...columns, ...operations.flatMap(operationTexts)];
}

export function operationTexts(operation: Operation) {
  const body = operation.body === undefined ? [] : fieldsOf(operation.body.input);
  return [
    operation.title,
    operation.signature,
    operation.note ?? "",
    ...[...(operation.inputs ?? []), ...body].map((input) => input.name),
  ];
}

/** What fits a text: resources first, then operations; what begins with the text before what holds it. */
export function findings(wanted: string) {
  const resources = PLAN.resources.filter((resource) => resource.removed !== true);
  const places = resources.flatMap((resource) => [
    {
      text: resource.title,
      where: resource.group ?? "",
      rest: [resource.note ?? "", ...(resource.list?.columns ?? []).map((column) => column.field)],
      page: { kind: "resource", resource: resource.id },
    },
    ...resource.operations.filter(isAllowed).map((index) => ({
      text: PLAN.operations.at(index).title,
      where: PLAN.operations.at(index).signature,
      rest: operationTexts(PLAN.operations.at(index)),
      page: { kind: "resource", resource: resource.id, unfolded: index },
    })),
  ]);
  const score = (place: Data) => {
    const title = place.text.toLowerCase();
    if (title.startsWith(wanted)) return 0;
    if (title.includes(wanted)) return 1;
    if (place.where.toLowerCase().includes(wanted)) return 2;
    return place.rest.some((text: string) => text.toLowerCase().includes(wanted)) ? 3 : 9;
  };
  return places
    .map((place) => ({ place, rank: score(place) }))
    .filter((one) => one.rank < 9)
    .toSorted((a, b) => a.rank - b.rank)
    .slice(0, 30)
    .map((one) => one.place);
}

/** Finds resources and operations by name, address, field or description, from the keyboard. */
export function Palette({ ui, whenClosed }: { ui: Ui; whenClosed: () => void }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const control = useRef<HTMLInputElement>(null);
  useEffect(() => {
    control.current?.focus();
  }, []);
  const found = findings(text.trim().toLowerCase());
  const open = (place: Data) => {
    whenClosed();
    ui.choose(place.page);
  };
  return (
    <div className="dragoman-veil dragoman-center">
      <div
        className="dragoman-palette"
        role="dialog"
        aria-modal="true"
        aria-label="Find"
        onKeyDown={(event) => {
          if (event.key === "Escape") whenClosed();
          if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
          if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
        }}
      >
        <form
          onSubmit={(event) => {
            event.preventDefault();
            if (found.at(at) !== undefined) open(found.at(at));
          }}
        >
          <label className="dragoman-hidden" htmlFor={id}>
            Find a resource, operation or field
          </label>
          <input
            id={id}
            ref={control}
            type="search"
            className="dragoman-input"
            placeholder="Find a resource, operation or field"
            autoComplete="off"
            value={text}
            onChange={(event) => {
              setText(event.target.value);
              setAt(0);
            }}
          />
        </form>
        <ul className="dragoman-found">
          {found.map((place, index) => (
            <li key={index}>
              <button
                type="button"
                className={index === at ? "dragoman-navitem dragoman-chosen" : "dragoman-navitem"}
                onClick={() => open(place)}
              >
                <span>{place.text}</span>
                <code className="dragoman-code">{place.where}</code>
              </button>
            </li>
          ))}
        </ul>
        {found.length === 0 ? <p className="dragoman-hint dragoman-padded">Nothing fits.</p> : null}
        <div className="dragoman-padded">
          <Button label="Close" isSmall whenPressed={() => whenClosed()} />
        </div>
      </div>
    </div>
  );
}
