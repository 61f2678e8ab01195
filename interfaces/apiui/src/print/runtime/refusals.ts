// ---- Refusals: what an error of the API says about single fields, and where the form shows them ----

import { inputKey } from "./calls";
import { fieldsOf, itemOf } from "./drafts";
import { isNested, textOf } from "./values";
import { own, ownEntries } from "./vetted";
import type { Data, Draft, Input, Operation, Problem } from "./types";

/** Names under which error bodies hold what is wrong with single fields. */
export const LISTS = [
  "errors",
  "detail",
  "details",
  "violations",
  "fieldErrors",
  "field_errors",
  "validationErrors",
  "validation_errors",
  "invalidParams",
  "invalid-params",
  "invalid_params",
];

/** Names under which an entry of such a list says which field it is about. */
export const PLACES = [
  "loc",
  "field",
  "path",
  "pointer",
  "propertyPath",
  "property",
  "instancePath",
  "dataPath",
  "attribute",
  "param",
  "parameter",
  "name",
  "key",
];

/** Words before the fields of a body. */
export const WRAPPERS = ["", "#", "$", "body", "data", "attributes", "request", "requestBody", "input"];

export const QUERY_WORDS = ["query", "path", "header", "cookie"];

/** What an error body says about single fields, at their places in the form; `place` is "" where the form has none. */
export function fieldProblems(operation: Operation, draft: Draft, data: Data): Problem[] {
  const inner = own(data, "error");
  const told = [...LISTS.map((name) => own(data, name)), ...LISTS.map((name) => own(inner, name))].flatMap(
    listedProblems,
  );
  const found = told.length > 0 ? told : namedProblems(data).filter((one) => isField(operation, one.path));
  return found.map(({ path, message }) => {
    const place = placeInForm(operation, draft, path);
    return { place: place ?? "", message: place === undefined ? `${path.join(" / ")}: ${message}` : message };
  });
}

export function listedProblems(found: Data): { path: string[]; message: string }[] {
  if (!Array.isArray(found)) return namedProblems(found);
  return found.flatMap((one) => {
    const source = own(one, "source");
    const at =
      PLACES.map((name) => own(one, name)).find((value) => value !== undefined && value !== null && value !== "") ??
      own(source, "pointer") ??
      own(source, "parameter");
    const path = pathOf(at);
    return path.length === 0 ? [] : messagesIn(one).map((message) => ({ path, message }));
  });
}

/** `{ title: ["is required"], address: { street: "is too long" } }`. */
export function namedProblems(found: Data, before: string[] = []): { path: string[]; message: string }[] {
  return ownEntries(Array.isArray(found) ? undefined : found).flatMap(([name, value]) => {
    const path = [...before, ...pathOf(name)];
    if (before.length < 6 && isNested(value) && !Array.isArray(value) && messagesIn(value).length === 0)
      return namedProblems(value, path);
    return (Array.isArray(value) ? value : [value]).flatMap(messagesIn).map((message) => ({ path, message }));
  });
}

export function messagesIn(one: Data): string[] {
  if (typeof one === "string") return [one];
  const found = ["message", "msg", "detail", "description", "reason", "title", "error", "code"]
    .map((name) => own(one, name))
    .find((value) => typeof value === "string");
  return found === undefined ? [] : [found];
}

/** `lines[0].code`, `/lines/0/code` or `["body", "lines", 0, "code"]` as names. */
export function pathOf(at: Data): string[] {
  const parts = Array.isArray(at)
    ? at.map(textOf)
    : textOf(at)
        .replace(/\[["']?([^\]"']*)["']?\]/g, "/$1")
        .split(/[./]/);
  return parts.filter((part) => part !== "");
}

export function isField(operation: Operation, path: string[]) {
  const names =
    operation.body === undefined ? [] : fieldsOf(operation.body.input).map((field) => plainName(field.name));
  return names.includes(plainName(path[0] ?? ""));
}

export function plainName(name: string) {
  return name.replace(/[^\p{L}\p{N}]/gu, "").toLowerCase();
}

export function placeInForm(operation: Operation, draft: Draft, path: string[]): string | undefined {
  const rest = path.filter((part, index) => !(QUERY_WORDS.includes(part) && index === 0));
  const isParameter = rest.length < path.length || operation.body === undefined;
  const parameter = (operation.inputs ?? []).find(
    (input) => plainName(input.name) === plainName(rest[0] ?? "") && (isParameter || !isField(operation, rest)),
  );
  if (parameter !== undefined) return inputKey(parameter);
  if (operation.body === undefined) return undefined;
  for (let from = 0; from < path.length; from += 1) {
    const found = placeOf(operation.body.input, draft, path.slice(from), "body");
    if (found !== undefined) return found;
    if (!WRAPPERS.includes(path.at(from)!)) return undefined;
  }
  return undefined;
}

/** The place of the control for a path; that of the group around it where the control is not shown. */
export function placeOf(input: Input, draft: Draft, path: string[], place: string): string | undefined {
  if (path.length === 0 || draft === undefined || draft === null || typeof draft === "string")
    return path.length === 0 || place !== "body" ? place : undefined;
  const [name, ...rest] = path;
  switch (input.kind) {
    case "object": {
      const fields = fieldsOf(input);
      const field =
        fields.find((one) => one.name === name) ?? fields.find((one) => plainName(one.name) === plainName(name));
      return field === undefined ? undefined : placeOf(field, own(draft, field.name), rest, `${place}/${field.name}`);
    }
    case "list": {
      const entry = /^[0-9]+$/.test(name) ? draft.at(Number(name)) : undefined;
      return entry === undefined ? place : (placeOf(itemOf(input), entry.draft, rest, `${place}/${name}`) ?? place);
    }
    case "map": {
      const index = draft.findIndex((entry: Data) => entry.name === name);
      return index < 0 ? place : (placeOf(itemOf(input), draft.at(index).draft, rest, `${place}/${index}`) ?? place);
    }
    case "variant": {
      const chosen = input.alternatives!.at(draft.chosen)!.input;
      const inside = `${place}/${draft.chosen}`;
      return placeOf(chosen, draft.draft, path, inside) ?? placeOf(chosen, draft.draft, rest, inside);
    }
    default:
      return place;
  }
}
