// ---- Guards: which rows a write is about, and what a view may fill in ----

import { PLAN } from "../plan";
import { fieldsOf, parseJson } from "./drafts";
import { isNested, labelOf, scalarText, textOf, valueAt } from "./values";
import { own, ownEntries } from "./vetted";
import type { Call, Data, Input, Operation, Resource, Values } from "./types";

/** Names that say nothing about whose key they are. */
export const BARE_NAME = /^_?(id|ids|uuid|guid|key|name|slug|code|number|login)$/i;

/** The path of an operation up to a parameter, without the names of those before it. */
export function pathBefore(operation: Operation, name: string) {
  const parts = operation.path.split(`{${name}}`);
  return parts.length < 2
    ? undefined
    : parts[0].replace(/\{[^}]*\}/g, "{}").replace(/\/v[0-9][0-9a-z.]{0,8}(?=\/)/gi, "");
}

/** Whether a path leads to a plain input: `where.id` to the field `id` of the variable `where`. */
export function reachesInput(inputs: Input[], path: string[]): boolean {
  const input = inputs.find((one) => one.name === path[0]);
  if (input === undefined) return false;
  if (path.length === 1) return input.kind !== "object";
  return input.kind === "object" && reachesInput(fieldsOf(input), path.slice(1));
}

/** The inputs of an operation that a key fills: by their names, and as fields of variables. */
export function takesKey(operation: Operation, parameter: string) {
  const inputs = operation.inputs ?? [];
  return (
    inputs.some((input) => input.name === parameter) ||
    (operation.queryText !== undefined && reachesInput(inputs, parameter.split(".")))
  );
}

/**
 * Those of the values that a view knows that are proven to be parameters of one of the resource's operations: the keys of
 * the item that is shown, and what the list was asked with. A name alone proves nothing.
 */
export function provenFor(
  resource: Resource,
  index: number | undefined,
  known: Values | undefined,
  isItem: boolean,
): Values {
  const operation = PLAN.operations.at(index);
  const isPart = [resource.detail, resource.edits, resource.deletes].includes(index);
  const list = resource.list === undefined ? undefined : PLAN.operations.at(resource.list.operation);
  const detail = resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail);
  const isProven = (name: string) => {
    const key = isItem ? (resource.keys ?? []).find((one) => one.parameter === name) : undefined;
    if (key !== undefined) return takesKey(operation, name) && (isPart || (key.also ?? []).includes(index!));
    const input = (operation.inputs ?? []).find((one) => one.name === name);
    if (input === undefined) return false;
    // What shows an item is asked with what the reader gave.
    if (index === resource.detail || index === resource.list?.operation) return true;
    const asked = (one: Operation | undefined) => (one?.inputs ?? []).find((other) => other.name === name);
    if (input.place === "path") {
      const before = pathBefore(operation, name);
      return [list, isItem ? detail : undefined].some(
        (one) => one !== undefined && before !== undefined && pathBefore(one, name) === before,
      );
    }
    if (input.place === "header") return asked(list)?.place === "header" || asked(detail)?.place === "header";
    return !BARE_NAME.test(name) && asked(list)?.required === true && asked(list)?.place === input.place;
  };
  return Object.fromEntries(ownEntries(known).filter(([name]) => isProven(name)));
}

/** Whether an operation is done with the item that is shown: it takes the item's key, or is a mutation of its kind. */
export function isRelated(resource: Resource, index: number, known: Values | undefined) {
  const operation = PLAN.operations.at(index);
  const inputs = operation.inputs ?? [];
  const isPlace = (name: string) =>
    name.includes(".") ||
    inputs.some((input) => input.name === name && ["path", "variable"].includes(input.place ?? ""));
  return (
    ownEntries(provenFor(resource, index, known, true)).some(([name]) => isPlace(name)) ||
    (operation.queryText !== undefined && operation.writes === true && inputs.some((input) => /id$/i.test(input.name)))
  );
}

/** Whether a part of a call that chooses rows is empty: then it may mean every row. */
export function isEmptyChoice(value: Data): boolean {
  if (value === undefined || value === null) return true;
  if (Array.isArray(value)) return value.length === 0 || value.some(isEmptyChoice);
  if (isNested(value)) {
    const entries = ownEntries(value);
    return entries.length === 0 || entries.some(([, inner]) => isEmptyChoice(inner));
  }
  const text = scalarText(value).trim();
  if (text === "") return true;
  // A filter that is written as text: `{}` means every row.
  const written = /^[[{]/.test(text) ? parseJson(text) : undefined;
  return written !== undefined && isEmptyChoice(written);
}

/** What is sent as the variables of a document, or as the body. */
export function givenIn(operation: Operation, call: Call): Data {
  if (operation.queryText === undefined) return call.body;
  const upload = own(call.body, "operations");
  return own(typeof upload === "string" ? parseJson(upload) : call.body, "variables");
}

/** Why a write is not sent: a sentence, or undefined. The page and the host may both be wrong; this is the last look. */
export function refusalOf(operation: Operation, call: Call): string | undefined {
  if (operation.writes !== true) return undefined;
  const asked = operation.path.split("/");
  const sent = call.path.split("/");
  const isOpen = asked.some((part, index) => {
    const found = sent.at(index) ?? "";
    return part.includes("{") && (found === part.replace(/\{[^}]*\}/g, "") || /^\.{0,2}$|[{}]/.test(found));
  });
  if (isOpen) return "The address does not say which record is meant. Nothing was sent.";
  const given = givenIn(operation, call);
  const empty = (operation.selectors ?? []).find((path) => isEmptyChoice(valueAt(given, path)));
  return empty === undefined
    ? undefined
    : `“${empty.join(".")}” says which records are changed, and it or a part of it is empty: that may mean all of them. Nothing was sent.`;
}

/** What a call is about, in words: the keys that it carries. */
export function targetOf(operation: Operation, call: Call) {
  if (operation.queryText === undefined) {
    const pairs = ownEntries(call.query).map(([name, value]) => `${name}=${textOf(value)}`);
    return `${operation.method} ${decodedPath(call.path)}${pairs.length === 0 ? "" : `?${pairs.join("&")}`}`;
  }
  const given = givenIn(operation, call);
  const paths =
    (operation.selectors ?? []).length > 0 ? operation.selectors! : ownEntries(given).map(([name]) => [name]);
  const texts = paths.map((path) => `${path.map(labelOf).join(" ")} ${choiceText(valueAt(given, path))}`);
  return `${operation.signature}${texts.length === 0 ? "" : `: ${texts.join(", ")}`}`;
}

/** A path as people read it. */
export function decodedPath(path: string) {
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

/** A value that chooses rows, in a few words. */
export function choiceText(value: Data): string {
  if (!isNested(value) || Array.isArray(value)) return textOf(value);
  return ownEntries(value)
    .map(([name, inner]) => `${name} ${choiceText(inner)}`)
    .join(", ");
}
