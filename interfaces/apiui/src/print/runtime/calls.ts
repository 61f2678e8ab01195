// ---- Calls: from drafts to a request, and from a response to a state ----

import { draftOf, fieldsOf, mergedValue, startDraft, valueOf } from "./drafts";
import { problemsOf } from "./problems";
import { isNested, scalarText, textOf } from "./values";
import { exactJsonText, isExactNumber, own, ownEntries, withAll, withOwn } from "./vetted";
import type { BodyForm, Call, Data, Draft, Input, Operation, Problem, Ui, Values } from "./types";

/** The key of an input among the drafts of its operation: a name may appear in more than one place. */
export function inputKey(input: Input) {
  return `${input.place ?? "query"} ${input.name}`;
}

export function startDrafts(operation: Operation, known: Values | undefined): Values {
  return (operation.inputs ?? []).reduce((drafts, input) => {
    const given = input.place === "variable" ? knownValue(input, input.name, known) : own(known, input.name);
    const draft = given === undefined ? startDraft(input, input.required === true) : draftOf(input, given);
    const isWhole = given === undefined || own(known, input.name) !== undefined;
    return withOwn(drafts, inputKey(input), isWhole ? draft : filledDraft(input, draft));
  }, {});
}

/** The value of a variable that a view knows: as a whole, or by fields such as `where.id`. */
export function knownValue(input: Input, path: string, known: Values | undefined): Data {
  const given = own(known, path);
  if (input.kind !== "object" || !ownEntries(known).some(([name]) => name.startsWith(`${path}.`))) return given;
  const pairs = fieldsOf(input).map((field) => [
    field.name,
    knownValue(field, `${path}.${field.name}`, known) ?? own(given, field.name),
  ]);
  return Object.fromEntries(pairs.filter((pair) => pair.at(1) !== undefined));
}

/** A draft of which only the keys are known: the rest is as in a new form. */
export function filledDraft(input: Input, draft: Draft): Draft {
  if (input.kind !== "object" || !isNested(draft)) return draft;
  return fieldsOf(input).reduce(
    (all, field) =>
      own(all, field.name) === undefined
        ? withOwn(all, field.name, startDraft(field, field.required === true))
        : withOwn(all, field.name, filledDraft(field, own(all, field.name))),
    draft,
  );
}

export function missingInputs(operation: Operation, drafts: Values) {
  return (operation.inputs ?? []).filter((input) => inputProblems(input, own(drafts, inputKey(input))).length > 0);
}

/** The same for a call that a page sends by itself, with the extra headers of its connection. */
export function stillMissing(ui: Ui, operation: Operation, drafts: Values) {
  const isGiven = (input: Input) =>
    input.place === "header" &&
    ui.headers.some((one) => one.name.toLowerCase() === input.name.toLowerCase() && one.text !== "");
  return missingInputs(operation, drafts).filter((input) => !isGiven(input));
}

/** Texts that a server may read as the way to another place, however they are escaped. */
export const LEADS_AWAY = /(^|[/\\])\.\.?($|[/\\;])/;

/** What is wrong with a parameter. A part of a path must not be empty or lead to another place. */
export function inputProblems(input: Input, draft: Draft, start?: Draft): Problem[] {
  const text = input.place === "path" ? textOf(valueOf(input, draft)) : "usual";
  if (text === "" || LEADS_AWAY.test(text))
    return [
      { place: inputKey(input), message: text === "" ? "This is required." : "This cannot be part of an address." },
    ];
  return problemsOf(input, draft, inputKey(input), start);
}

export function encoded(value: Data) {
  return encodeURIComponent(isNested(value) ? exactJsonText(value) : scalarText(value));
}

/** A path parameter in the styles simple, label and matrix. */
export function pathText(input: Input, value: Data) {
  const list = Array.isArray(value) ? value : undefined;
  const pairs = list === undefined && isNested(value) ? ownEntries(value) : undefined;
  const joined = (separator: string, between: string) =>
    (pairs ?? []).map(([name, one]) => `${encoded(name)}${between}${encoded(one)}`).join(separator);
  if (input.format === "label") {
    const dot = input.explode === true ? "." : ",";
    if (pairs) return `.${input.explode === true ? joined(".", "=") : joined(",", ",")}`;
    return `.${list ? list.map(encoded).join(dot) : encoded(value)}`;
  }
  if (input.format === "matrix") {
    const name = encoded(input.name);
    if (pairs) return input.explode === true ? `;${joined(";", "=")}` : `;${name}=${joined(",", ",")}`;
    if (list)
      return input.explode === true
        ? list.map((one) => `;${name}=${encoded(one)}`).join("")
        : `;${name}=${list.map(encoded).join(",")}`;
    return `;${name}=${encoded(value)}`;
  }
  if (pairs) return input.explode === true ? joined(",", "=") : joined(",", ",");
  return list ? list.map(encoded).join(",") : encoded(value);
}

/** Name and value pairs of a nested value, the path in brackets. */
export function bracketPairs(name: string, value: Data, isIndexed: boolean): [string, Data][] {
  const isOpen = (one: Data) => isNested(one) && !(one instanceof Blob);
  if (Array.isArray(value))
    return value.flatMap((one, index) =>
      bracketPairs(isIndexed || isOpen(one) ? `${name}[${index}]` : name, one, isIndexed),
    );
  if (isOpen(value)) return ownEntries(value).flatMap(([key, one]) => bracketPairs(`${name}[${key}]`, one, isIndexed));
  return [[name, isExactNumber(value) ? scalarText(value) : value]];
}

/** A query parameter in the styles form, spaceDelimited, pipeDelimited, deepObject and json. */
export function queryPairs(input: Input, value: Data): [string, Data][] {
  if (input.format === "json") return [[input.name, exactJsonText(value)]];
  if (input.format === "deepObject")
    return bracketPairs(Array.isArray(value) ? `${input.name}[]` : input.name, value, false).map(([name, one]) => [
      name,
      String(one),
    ]);
  const separator =
    input.format === "spaceDelimited"
      ? " "
      : input.format === "pipeDelimited"
        ? "|"
        : input.format === "tabDelimited"
          ? String.fromCharCode(9)
          : ",";
  const isExploded = input.explode ?? (input.format === undefined || input.format === "form");
  if (Array.isArray(value)) {
    const texts = value.map((one) => (isNested(one) ? exactJsonText(one) : scalarText(one)));
    return isExploded ? texts.map((text) => [input.name, text]) : [[input.name, texts.join(separator)]];
  }
  if (isNested(value)) {
    const pairs = ownEntries(value).map(([name, one]): [string, string] => [
      name,
      isNested(one) ? exactJsonText(one) : scalarText(one),
    ]);
    return isExploded ? pairs : [[input.name, pairs.map(([name, one]) => `${name}${separator}${one}`).join(separator)]];
  }
  return [[input.name, scalarText(value)]];
}

/** Pairs as an object; a name that comes twice holds a list. */
export function gathered(pairs: [string, Data][]): Values {
  return pairs.reduce((all, [name, value]) => {
    const before = own(all, name);
    return withOwn(
      all,
      name,
      before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value],
    );
  }, {});
}

export function headerText(value: Data) {
  if (Array.isArray(value)) return value.map(scalarText).join(",");
  return isNested(value)
    ? ownEntries(value)
        .map(([name, one]) => `${name},${scalarText(one)}`)
        .join(",")
    : scalarText(value);
}

/**
 * The request of an operation with these drafts and the value of its body. In an edit, `edit` holds the item and the
 * drafts that the form began with: variables that are not required are sent only where they were changed.
 */
export function buildCall(operation: Operation, drafts: Values, bodyValue?: Data, edit?: Data): Call {
  let path = operation.path;
  const query = [];
  const headers = [];
  const cookies = [];
  const variables = [];
  for (const input of operation.inputs ?? []) {
    const value =
      edit !== undefined && input.place === "variable"
        ? changedVariable(input, edit, own(drafts, inputKey(input)))
        : valueOf(input, own(drafts, inputKey(input)));
    if (value === undefined || (value === null && input.place !== "variable")) continue;
    if (input.place === "path") path = path.split(`{${input.name}}`).join(pathText(input, value));
    else if (input.place === "header") headers.push([input.name, headerText(value)]);
    else if (input.place === "cookie") cookies.push(`${input.name}=${encoded(value)}`);
    else if (input.place === "variable") variables.push([input.name, value]);
    else query.push(...queryPairs(input, value));
  }
  if (cookies.length > 0) headers.push(["Cookie", cookies.join("; ")]);
  let body;
  if (operation.queryText !== undefined) {
    const sent = { query: operation.queryText, variables: Object.fromEntries(variables) };
    const files = filesIn(sent.variables, "variables");
    headers.push(["Content-Type", files.length > 0 ? "multipart/form-data" : "application/json"]);
    if (operation.inParts === true) headers.push(["Accept", "text/event-stream, application/json"]);
    body = files.length > 0 ? uploadOf(sent, files) : sent;
  } else if (operation.body !== undefined) {
    body = bodyOf(operation.body, bodyValue);
    if (body !== undefined)
      headers.push([
        "Content-Type",
        operation.body.contentType.includes("*") ? "application/json" : operation.body.contentType,
      ]);
  }
  return { path, query: gathered(query), headers: Object.fromEntries(headers), body };
}

/** The files in a value, as `[path, file]`. */
export function filesIn(value: Data, path: string): [string, Blob][] {
  if (value instanceof Blob) return [[path, value]];
  if (Array.isArray(value)) return value.flatMap((one, index) => filesIn(one, `${path}.${index}`));
  return ownEntries(value).flatMap(([name, one]) => filesIn(one, `${path}.${name}`));
}

/** A GraphQL request with files, as the multipart request specification has it. */
export function uploadOf(sent: Data, files: [string, Blob][]) {
  const places = files.map(([path], index) => [String(index), [path]]);
  const parts = files.map(([, file], index) => [String(index), file]);
  return withAll(
    { operations: exactJsonText(withoutFiles(sent)), map: JSON.stringify(Object.fromEntries(places)) },
    Object.fromEntries(parts),
  );
}

export function withoutFiles(value: Data): Data {
  if (value instanceof Blob) return null;
  if (Array.isArray(value)) return value.map(withoutFiles);
  if (!isNested(value)) return value;
  return Object.fromEntries(ownEntries(value).map(([name, one]) => [name, withoutFiles(one)]));
}

/** The variable of an edit: the key of the item, what is required, and what was changed. */
export function changedVariable(input: Input, edit: Data, draft: Draft) {
  const start = own(edit.starts, inputKey(input));
  const base = own(edit.item, input.name);
  const isGroup = input.kind === "object" && draft !== undefined && draft !== null && typeof draft !== "string";
  if (isGroup && (edit.record === undefined || isOnWay(edit, input.name)))
    return changedFields(input, input.name, edit, start, draft);
  const isNeeded = input.required === true || own(edit.known, input.name) !== undefined;
  return draft === start && !isNeeded
    ? undefined
    : base === undefined
      ? valueOf(input, draft)
      : mergedValue(input, base, start, draft);
}

/** Whether a variable, or an object in it, holds the key of the item or its fields. */
export function isOnWay(edit: Data, path: string) {
  const holdsKey = ownEntries(edit.known).some(([name]) => name.startsWith(`${path}.`));
  const record = (edit.record ?? []).join(".");
  return holdsKey || record === path || record.startsWith(`${path}.`);
}

/** The fields of such an object. The key is always sent, whatever was changed. */
export function changedFields(input: Input, path: string, edit: Data, start: Draft, draft: Draft): Values {
  const isRecord = edit.record === undefined || edit.record.join(".") === path;
  const pairs = fieldsOf(input).flatMap((field) => {
    const [before, now] = [own(start, field.name), own(draft, field.name)];
    const place = `${path}.${field.name}`;
    if (own(edit.known, place) !== undefined) return [[field.name, valueOf(field, now)]];
    if (field.kind === "object" && isOnWay(edit, place) && isNested(now))
      return [[field.name, changedFields(field, place, edit, before, now)]];
    if (before === now && field.required !== true) return [];
    const sent = isRecord ? own(edit.item, field.name) : undefined;
    const value = sent === undefined ? valueOf(field, now) : mergedValue(field, sent, before, now);
    return value === undefined ? (before === now ? [] : [[field.name, null]]) : [[field.name, value]];
  });
  return Object.fromEntries(pairs);
}

export function bodyOf(form: BodyForm, value: Data) {
  if (value === undefined || form.kind === "json" || form.kind === "text" || form.kind === "file") return value;
  if (form.kind === "multipart") return value;
  return gathered(ownEntries(value).flatMap(([name, one]) => bracketPairs(name, one, form.brackets === true)));
}
