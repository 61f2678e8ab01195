// ---- Problems: what is wrong with a draft, in a sentence ----

import { TEXT_KINDS, fieldsOf, itemOf, parseJson, valueOf } from "./drafts";
import { scalarText } from "./values";
import { exactJsonText, isExactNumber, own } from "./vetted";
import type { Data, Draft, Input, Problem } from "./types";

/** What is wrong with a draft, as `{ place, message }`; `place` is the path of the field. What was not touched is not judged. */
export function problemsOf(input: Input, draft: Draft, place: string, start?: Draft, isPartial?: boolean): Problem[] {
  const found = (message: string) => [{ place, message }];
  if (draft === start && (start !== undefined || isPartial === true)) return [];
  if (draft === null) return input.nullable === true || input.required !== true ? [] : found("This cannot be null.");
  const isText = typeof draft === "string";
  if (
    (input.kind === "json" || (isText && ["object", "map"].includes(input.kind))) &&
    draft !== undefined &&
    draft.trim() !== "" &&
    parseJson(draft) === undefined
  )
    return found("This is not valid JSON.");
  const value = valueOf(input, draft);
  if (draft === "" && typeof start === "string" && TEXT_KINDS.includes(input.kind))
    return textProblem(input, "").flatMap(found);
  if (value === undefined) return input.required === true ? found("This is required.") : [];
  if (isText && ["object", "map"].includes(input.kind)) return [];
  switch (input.kind) {
    case "object":
      return fieldsOf(input).flatMap((field) =>
        problemsOf(field, own(draft, field.name), `${place}/${field.name}`, own(start, field.name), isPartial),
      );
    case "variant":
      return problemsOf(
        input.alternatives!.at(draft.chosen)!.input,
        draft.draft,
        `${place}/${draft.chosen}`,
        draft.start,
        isPartial,
      );
    case "map":
      return draft.flatMap((entry: Data, index: number) => [
        ...nameProblem(draft, index).map((message) => ({ place: `${place}/${index}/name`, message })),
        ...problemsOf(itemOf(input), entry.draft, `${place}/${index}`, entry.start, isPartial),
      ]);
    case "list":
      if (value.length < (input.minLength ?? 0)) return found(`At least ${input.minLength} entries are needed.`);
      if (value.length > (input.maxLength ?? Infinity)) return found(`At most ${input.maxLength} entries are allowed.`);
      if (input.distinct === true && new Set(value.map((one: Data) => exactJsonText(one))).size < value.length)
        return found("Two entries are the same.");
      return draft.flatMap((entry: Data, index: number) =>
        problemsOf(itemOf(input), entry.draft, `${place}/${index}`, entry.start, isPartial),
      );
    case "number":
    case "integer":
      return numberProblem(input, value).flatMap(found);
    case "email":
      return /^[^@\s]+@[^@\s]+$/.test(value) ? [] : found("This is not an e-mail address.");
    case "url":
      return /^[a-z][a-z0-9+.-]*:\S+$/i.test(value)
        ? textProblem(input, String(value)).flatMap(found)
        : found("This is not a web address.");
    case "file":
    case "choice":
    case "boolean":
    case "json":
      return [];
    default:
      return textProblem(input, String(value)).flatMap(found);
  }
}

/** The names of a map differ, and none is empty. */
export function nameProblem(entries: Data[], index: number) {
  const name = entries.at(index).name ?? "";
  if (name === "") return ["This is required."];
  return entries.slice(0, index).some((one) => one.name === name) ? ["This name is there already."] : [];
}

export function numberProblem(input: Input, exact: Data) {
  const value = Number(scalarText(exact));
  if (Number.isNaN(value)) return ["This is not a number."];
  if (
    input.kind === "integer" &&
    !(isExactNumber(exact) ? /^-?[0-9]+$/.test(scalarText(exact)) : Number.isInteger(value))
  )
    return ["This must be a whole number."];
  const { minimum, maximum } = input;
  if (minimum !== undefined && (input.above === true ? value <= minimum : value < minimum))
    return [`This must be ${input.above === true ? "more than" : "at least"} ${minimum}.`];
  if (maximum !== undefined && (input.below === true ? value >= maximum : value > maximum))
    return [`This must be ${input.below === true ? "less than" : "at most"} ${maximum}.`];
  if (input.step !== undefined && Math.abs(value / input.step - Math.round(value / input.step)) > 0.000001)
    return [`This must be a multiple of ${input.step}.`];
  return [];
}

export function textProblem(input: Input, value: string) {
  if (value.length < (input.minLength ?? 0)) return [`At least ${input.minLength} characters are needed.`];
  if (value.length > (input.maxLength ?? Infinity)) return [`At most ${input.maxLength} characters are allowed.`];
  if (input.pattern !== undefined && !matchesPattern(input.pattern, value))
    return [`This does not have the expected form (${input.pattern}).`];
  return [];
}

export function matchesPattern(pattern: string, value: string) {
  if (value.length > 5000) return true;
  try {
    return new RegExp(pattern, "u").test(value);
  } catch {
    return true;
  }
}
