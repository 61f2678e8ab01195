// ---- Drafts: what is being typed into a form, and the value it stands for ----

import { PLAN } from "../plan";
import { isNested, scalarText } from "./values";
import { exactJsonText, exactNumber, isExactNumber, own, ownEntries, parseExactJson, withOwn } from "./vetted";
import type { Data, Draft, Input, Values } from "./types";
// A draft that is undefined sends nothing, a draft that is null sends null. A draft that is still the one that the form
// began with stands for the value that the API sent, exactly as it was.

/** The draft of a text that is there and empty, where emptying the control means something else. */
export const EMPTY_TEXT = { isEmptyText: true };

export const TEXT_KINDS = ["text", "multiline", "secret", "email", "url"];

export function fieldsOf(input: Input): Input[] {
  return input.shape === undefined ? (input.fields ?? []) : PLAN.shapes.at(input.shape).fields;
}

/** What a list or map holds; an entry that is there has to be filled in. */
export function itemOf(input: Input): Input {
  return withOwn(input.item ?? { name: "", kind: "text" }, "required", true);
}

export function parseJson(text: string) {
  try {
    return parseExactJson(text);
  } catch {
    return undefined;
  }
}

/** The draft that a form begins with. Optional parts begin absent, so that recursive forms are finite. */
export function startDraft(input: Input, isWanted: boolean): Draft {
  if (input.initial !== undefined) return draftOf(input, parseJson(input.initial));
  if (input.kind === "object") {
    if (!isWanted) return undefined;
    return fieldsOf(input).reduce(
      (draft, field) => withOwn(draft, field.name, startDraft(field, field.required === true)),
      {},
    );
  }
  if (input.kind === "variant") return isWanted ? newVariant(input, 0) : undefined;
  if (input.kind === "list" || input.kind === "map") return isWanted ? [] : undefined;
  if (input.kind === "choice" && isWanted && input.choices!.length === 1) return exactJsonText(input.choices!.at(0));
  return undefined;
}

export function newEntry(input: Input, name: string) {
  return { name, draft: startDraft(itemOf(input), true) };
}

export function newVariant(input: Input, chosen: number) {
  return { chosen, draft: startDraft(input.alternatives!.at(chosen)!.input, true) };
}

/** An entry of a list or map that shows a value of the API: it keeps the value and the draft that stands for it. */
export function entryOf(input: Input, base: Data, name?: string) {
  const start = draftOf(input, base);
  return { name, base, start, draft: start };
}

/** The draft that shows an existing value. */
export function draftOf(input: Input, value: Data): Draft {
  if (value === undefined || value === null) return value;
  switch (input.kind) {
    case "object":
      if (!isNested(value) || Array.isArray(value)) return exactJsonText(value);
      return fieldsOf(input).reduce(
        (draft, field) => withOwn(draft, field.name, draftOf(field, own(value, field.name))),
        {},
      );
    case "list":
      return (Array.isArray(value) ? value : [value]).map((one) => entryOf(itemOf(input), one));
    case "map":
      return isNested(value)
        ? ownEntries(value).map(([name, inner]) => entryOf(itemOf(input), inner, name))
        : exactJsonText(value);
    case "variant": {
      const chosen = chosenAlternative(input, value);
      const start = draftOf(input.alternatives!.at(chosen)!.input, value);
      return { chosen, base: value, start, draft: start };
    }
    case "choice":
      return exactJsonText(value);
    case "boolean":
      return value === true || value === "true";
    case "json":
      return exactJsonText(value, 2);
    case "file":
      return undefined;
    default:
      return isNested(value) ? exactJsonText(value) : scalarText(value);
  }
}

export function chosenAlternative(input: Input, value: Data) {
  const name = input.discriminator === undefined ? undefined : own(value, input.discriminator);
  const byName = input.alternatives!.findIndex((one) => name !== undefined && one.value === String(name));
  if (byName >= 0) return byName;
  const score = (one: Data) => {
    if (one.input.kind === "object")
      return isNested(value) && !Array.isArray(value)
        ? 1 + fieldsOf(one.input).filter((field) => own(value, field.name) !== undefined).length
        : 0;
    if (one.input.kind === "list") return Array.isArray(value) ? 1 : 0;
    return isNested(value) ? 0 : 1;
  };
  const scores = input.alternatives!.map(score);
  return Math.max(0, scores.indexOf(Math.max(...scores)));
}

/** The value that a draft of a new item stands for; undefined means that nothing is sent. */
export function valueOf(input: Input, draft: Draft): Data {
  if (draft === undefined || draft === null) return draft;
  if (draft === EMPTY_TEXT) return "";
  switch (input.kind) {
    case "object": {
      if (typeof draft === "string") return parseJson(draft);
      const pairs = fieldsOf(input).map((field) => [field.name, valueOf(field, own(draft, field.name))]);
      return Object.fromEntries(pairs.filter((pair) => pair.at(1) !== undefined));
    }
    case "list":
      return draft.map((entry: Data) => valueOfEntry(itemOf(input), entry)).filter((item: Data) => item !== undefined);
    case "map": {
      if (typeof draft === "string") return parseJson(draft);
      const named = draft.filter((entry: Data) => entry.name !== "");
      return Object.fromEntries(named.map((entry: Data) => [entry.name, valueOfEntry(itemOf(input), entry) ?? null]));
    }
    case "variant": {
      const one = input.alternatives!.at(draft.chosen)!;
      const value = valueOf(one.input, draft.draft);
      const isTold = input.discriminator !== undefined && one.value !== undefined && isNested(value);
      return isTold && !Array.isArray(value) && own(value, input.discriminator) === undefined
        ? withOwn(value, input.discriminator, one.value)
        : value;
    }
    case "choice":
      return draft === "" ? undefined : parseJson(draft);
    case "number":
    case "integer":
      return String(draft).trim() === "" ? undefined : (exactNumber(String(draft).trim()) ?? Number(draft));
    case "json":
      return draft.trim() === "" ? undefined : parseJson(draft);
    case "boolean":
    case "file":
      return draft;
    default:
      return draft === "" ? undefined : draft;
  }
}

export function valueOfEntry(input: Input, entry: Data) {
  return entry.start === undefined && entry.base === undefined
    ? valueOf(input, entry.draft)
    : mergedValue(input, entry.base, entry.start, entry.draft);
}

/** The value after an edit: `base` is what the API sent and `start` the draft that showed it. What was not touched is `base`. */
export function mergedValue(input: Input, base: Data, start: Draft, draft: Draft): Data {
  if (draft === start) return base;
  if (draft === undefined || draft === null) return draft;
  if (base === undefined && start === undefined) return valueOf(input, draft);
  if (input.kind === "object" && typeof draft !== "string") {
    const before = isNested(base) && !Array.isArray(base) ? base : {};
    return fieldsOf(input).reduce((value, field) => {
      const next = mergedValue(field, own(before, field.name), own(start, field.name), own(draft, field.name));
      return next === undefined
        ? withoutOwn(value, field.name)
        : next === own(value, field.name)
          ? value
          : withOwn(value, field.name, next);
    }, before);
  }
  if (input.kind === "variant") {
    const isSame = draft.base !== undefined && draft.chosen === start?.chosen;
    return isSame
      ? mergedValue(input.alternatives!.at(draft.chosen)!.input, draft.base, draft.start, draft.draft)
      : valueOf(input, draft);
  }
  if (["list", "map"].includes(input.kind)) return valueOf(input, draft);
  return mergedScalar(input, base, start, draft);
}

export function mergedScalar(input: Input, base: Data, start: Draft, draft: Draft) {
  if (draft === EMPTY_TEXT) return "";
  if (draft === "") {
    if (start === undefined || start === null) return base;
    return TEXT_KINDS.includes(input.kind) ? "" : input.nullable === true ? null : undefined;
  }
  if (isNested(base) && typeof draft === "string") return parseJson(draft) ?? draft;
  const isNumber = typeof base === "number" || isExactNumber(base);
  return isNumber && TEXT_KINDS.includes(input.kind) ? (exactNumber(draft) ?? draft) : valueOf(input, draft);
}

export function withoutOwn(object: Data, name: string) {
  return own(object, name) === undefined
    ? object
    : Object.fromEntries(ownEntries(object).filter(([key]) => key !== name));
}

/** A value without what only the server sets. */
export function withoutPaths(value: Data, paths: string[][]) {
  return paths.reduce((left, path) => withoutPath(left, path), value);
}

export function withoutPath(value: Data, path: string[]): Data {
  if (!isNested(value)) return value;
  const name = path[0];
  const rest = path.slice(1);
  if (name === "*") return Array.isArray(value) ? value.map((one) => withoutPath(one, rest)) : value;
  const inner = own(value, name);
  if (Array.isArray(value) || inner === undefined) return value;
  return rest.length === 0 ? withoutOwn(value, name) : withOwn(value, name, withoutPath(inner, rest));
}

export function isSameValue(first: Data, second: Data) {
  return first === second || exactJsonText(first) === exactJsonText(second);
}

/** The fields that differ. A field that is gone is null: that is how a patch removes it. */
export function changesOf(base: Data, next: Data, isDeep?: boolean): Values {
  const names = [...new Set([...ownEntries(base), ...ownEntries(next)].map((pair) => pair.at(0)))];
  const isObject = (value: Data) => isNested(value) && !Array.isArray(value);
  const pairs = names.flatMap((name) => {
    const before = own(base, name);
    const after = own(next, name);
    if (isSameValue(before, after)) return [];
    if (after === undefined) return [[name, null]];
    return [[name, isDeep && isObject(before) && isObject(after) ? changesOf(before, after, true) : after]];
  });
  return Object.fromEntries(pairs);
}
