// ---- Edits: what is sent when an existing item was changed ----

import { inputKey } from "./calls";
import { changesOf, draftOf, fieldsOf, isSameValue, mergedValue, startDraft, withoutPaths } from "./drafts";
import { isNested } from "./values";
import { own, ownEntries, withAll, withOwn } from "./vetted";
import type { BodyForm, Data, Draft, Input, Operation, Values } from "./types";

export function startBody(operation: Operation, value?: Data) {
  if (operation.body === undefined) return undefined;
  const { input } = operation.body;
  if (value !== undefined) return draftOf(input, value);
  return startDraft(input, operation.body.required === true || ["object", "variant"].includes(input.kind));
}

/** Required fields by which an API tells versions of a record apart: a patch carries them unchanged. */
export const VERSION_FIELD = /^(version|_?etag|_?rev|revision|resource_?version|lock_?version|row_?version)$/i;

/** The fields of a body that say which record it is about, where the address does not. */
export function bodyKeys(operation: Operation): string[] {
  return operation.queryText === undefined ? (operation.selectors ?? []).map((path) => path[0]) : [];
}

/** What the form of an edit shows of a body: not the key of the record, which would lead to another one. */
export function shownBody(operation: Operation): BodyForm {
  const form = operation.body!;
  const keys = bodyKeys(operation);
  if (form.input.kind !== "object" || keys.length === 0) return form;
  const fields = fieldsOf(form.input).filter((field) => !keys.includes(field.name));
  return withAll(form, { input: withAll(form.input, { shape: undefined, fields }) });
}

/** A body with the key of the record that is edited, whatever was typed. */
export function withBodyKeys(operation: Operation, base: Data, body: Data): Data {
  if (!isNested(body) || Array.isArray(body)) return body;
  return bodyKeys(operation).reduce((all: Data, name) => withOwn(all, name, own(base, name)), body);
}

/** The body of an edit: the whole record for PUT, the changes for everything else; without what only the server sets. */
export function editedBody(operation: Operation, base: Data, start: Draft, draft: Draft) {
  const { input, contentType, serverSet } = operation.body!;
  const next = withBodyKeys(operation, base, withoutPaths(mergedValue(input, base, start, draft), serverSet ?? []));
  const isObject = (value: Data) => isNested(value) && !Array.isArray(value);
  if (operation.method === "PUT" || !isObject(base) || !isObject(next)) return next;
  const before = withoutPaths(base, serverSet ?? []);
  const changes = changesOf(before, next, /merge-patch/.test(contentType));
  if (/json-patch/.test(contentType)) return patchSteps(before, next, changes);
  const versions = fieldsOf(input).filter(
    (field) => field.required === true && VERSION_FIELD.test(field.name) && own(base, field.name) !== undefined,
  );
  return ownEntries(changes).length === 0
    ? changes
    : versions.reduce(
        (all, field) => (own(all, field.name) === undefined ? withOwn(all, field.name, own(base, field.name)) : all),
        changes,
      );
}

/** The steps of a JSON Patch. */
export function patchSteps(before: Data, next: Data, changes: Values) {
  return ownEntries(changes).map(([name, value]) => {
    const path = `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (own(next, name) === undefined) return { op: "remove", path };
    return { op: own(before, name) === undefined ? "add" : "replace", path, value };
  });
}

export function hasNoChanges(operation: Operation, body: Data, starts: Values, drafts: Values) {
  const isSame = (operation.inputs ?? []).every(
    (input) => own(starts, inputKey(input)) === own(drafts, inputKey(input)),
  );
  return (
    isSame &&
    (operation.body === undefined
      ? operation.queryText !== undefined
      : isNested(body) && (Array.isArray(body) ? body.length === 0 : ownEntries(body).length === 0))
  );
}

/** Whether a field that is edited here has another value now than when the form was opened. */
export function isChangedElsewhere(input: Input, before: Data, now: Data, start: Draft, draft: Draft) {
  if (input.kind !== "object" || typeof draft === "string") return draft !== start && !isSameValue(before, now);
  return fieldsOf(input).some(
    (field) =>
      own(start, field.name) !== own(draft, field.name) && !isSameValue(own(before, field.name), own(now, field.name)),
  );
}
