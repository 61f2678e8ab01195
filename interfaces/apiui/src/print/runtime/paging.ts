// ---- Lists: load, filter, sort, group and page through the items of a resource ----

import { PLAN } from "../plan";
import { buildCall, inputKey } from "./calls";
import { valueOf } from "./drafts";
import { nextLink, queryOfAddress } from "./sending";
import { fieldOf, isNested, labelOf, valueAt } from "./values";
import { own, ownEntries, withAll, withOwn } from "./vetted";
import type { Call, CallState, Column, Data, List, Mark, Operation, Paging, Values } from "./types";

export function shownColumns(list: List) {
  return list.columns.filter((column) => column.hidden !== true);
}

export function columnOf(list: List, field: string): Column {
  return list.columns.find((column) => column.field === field) ?? { field, label: labelOf(field), display: "text" };
}

/** The query that asks for one page. */
export function pageQuery(paging: Paging | undefined, pageSize: number, mark: Mark) {
  if (paging === undefined) return {};
  const pairs = [];
  if (paging.sizeParameter !== undefined) pairs.push([paging.sizeParameter, pageSize]);
  if (paging.style === "page") pairs.push([paging.parameter, mark.index + (paging.first ?? 0)]);
  else if (paging.style === "offset") pairs.push([paging.parameter, mark.index * pageSize]);
  else if (mark.cursor !== undefined && paging.parameter !== undefined) pairs.push([paging.parameter, mark.cursor]);
  return Object.fromEntries(pairs);
}

/** The mark of the page after this one, or undefined. */
export function nextMark(
  paging: Paging | undefined,
  pageSize: number,
  mark: Mark,
  state: CallState,
  items: Data[],
): Mark | undefined {
  if (paging === undefined || state.phase !== "done") return undefined;
  const index = mark.index + 1;
  if (paging.style === "page" || paging.style === "offset") {
    return items.length > 0 && (paging.sizeParameter === undefined || items.length >= pageSize) ? { index } : undefined;
  }
  const more = paging.more === undefined ? undefined : valueAt(state.result, paging.more);
  if (more === false) return undefined;
  const sent = paging.next === undefined ? undefined : valueAt(state.result, paging.next);
  if (paging.style === "link") {
    const address = typeof sent === "string" && sent !== "" ? sent : nextLink(state.headers);
    return address === undefined ? undefined : { index, query: queryOfAddress(address) };
  }
  const last = paging.fromLast === undefined ? undefined : fieldOf(items.at(-1), paging.fromLast);
  const cursor = sent ?? last;
  if (cursor === undefined || cursor === null || cursor === "" || items.length === 0) return undefined;
  return more === undefined && paging.fromLast !== undefined && items.length < pageSize ? undefined : { index, cursor };
}

/** The most rows that the API sends at a time, where it says so. */
export function largestPage(operation: Operation, paging: Paging | undefined) {
  return (operation.inputs ?? []).find((input) => input.name === paging?.sizeParameter)?.maximum;
}

/** The parameters that page through a list: no filters. A connection is paged in one direction, so it has four of them. */
export function pagingNames(list: List) {
  if (list.paging === undefined || !PLAN.pagination) return [];
  if (list.paging.style === "connection") return ["first", "after", "last", "before"];
  return [list.paging.parameter, list.paging.sizeParameter].filter((name) => name !== undefined);
}

/** The call for one page of a list. */
export function listCall(operation: Operation, list: List, drafts: Values, pageSize: number, mark: Mark): Call {
  const call = buildCall(operation, drafts, undefined);
  const paging = PLAN.pagination ? list.paging : undefined;
  if (paging === undefined) return call;
  const query = pageQuery(paging, pageSize, mark);
  if (operation.queryText !== undefined) {
    return {
      path: call.path,
      query: call.query,
      headers: call.headers,
      body: { query: operation.queryText, variables: withAll(call.body.variables, query) },
    };
  }
  return {
    path: call.path,
    query: withAll(withAll(call.query, query), mark.query),
    headers: call.headers,
    body: undefined,
  };
}

/** What came in place of a list, where the answer is not one; `{ value }` or undefined. */
export function otherAnswer(list: List, state: CallState) {
  if (state.phase !== "done") return undefined;
  const found = list.items === undefined ? state.result : valueAt(state.result, list.items);
  return Array.isArray(found) ? undefined : { value: state.result };
}

export function itemsOf(list: List, state: CallState) {
  if (state.phase !== "done") return [];
  const found = list.items === undefined ? state.result : valueAt(state.result, list.items);
  return Array.isArray(found) ? found.filter((item) => item !== null && item !== undefined) : [];
}

/** How many items there are: by the answer, or by the headers that are usual for it. */
export function totalOf(list: List, state: CallState) {
  if (state.phase !== "done") return undefined;
  const total = list.total === undefined ? undefined : valueAt(state.result, list.total);
  if (typeof total === "number") return total;
  const header = ownEntries(state.headers).find(([name]) => /^(x-total(-count)?|content-range)$/i.test(name));
  const digits = /([0-9]+)\s*$/.exec(header === undefined ? "" : String(header[1]))?.at(1);
  return digits === undefined ? undefined : Number(digits);
}

/** The values that are handed from a list to its items: what the list itself was asked with. */
export function knownValues(operation: Operation, drafts: Values, isLookup?: boolean): Values {
  return (operation.inputs ?? []).reduce((known: Values, input) => {
    const value = valueOf(input, own(drafts, inputKey(input)));
    // What every call needs, such as a tenant in a header, is needed for the items too.
    const isHandedOn = input.required === true || input.place === "path" || (isLookup && input.place === "variable");
    if (value === undefined || !isHandedOn) return known;
    return input.place === "variable" ? flattened(known, input.name, value) : withOwn(known, input.name, value);
  }, {});
}

/** Values by name; the fields of an object by their paths, `where.id`. */
export function flattened(known: Values, name: string, value: Data): Values {
  if (!isNested(value) || Array.isArray(value)) return withOwn(known, name, value);
  return ownEntries(value).reduce((all, [field, inner]) => flattened(all, `${name}.${field}`, inner), known);
}
