// ---- Showing: the value of a column, its text by a format, and the conditions that rows meet ----

import { inputKey } from "./calls";
import { draftOf } from "./drafts";
import { fieldOf, isNested, momentOf, scalarText, shownText, textOf } from "./values";
import { isExactNumber, own, withOwn } from "./vetted";
import type { ColorRule, Column, Computed, Condition, Data, List, Operation, ValueFormat, Values } from "./types";

export const DAY = 86400000;

/** The value of a column in a row: a field, or what is computed from some. */
export function cellOf(column: Column, item: Data): Data {
  return column.computed === undefined ? fieldOf(item, column.field) : computedOf(column.computed, item);
}

/** A number that a field holds; undefined where it holds none. */
export function numberOf(value: Data): number | undefined {
  if (value === null || value === undefined || value === "" || typeof value === "boolean" || isNested(value))
    return undefined;
  const number = Number(scalarText(value));
  return Number.isNaN(number) ? undefined : number;
}

export function computedOf(computed: Computed, item: Data): Data {
  const found = computed.fields.map((field) => fieldOf(item, field));
  if (computed.how === "join") {
    const texts = found.map(textOf).filter((text) => text !== "");
    return texts.length === 0 ? undefined : texts.join(" ");
  }
  if (computed.how === "daysUntil" || computed.how === "daysSince") {
    const at = momentOf(found.at(0));
    if (Number.isNaN(at)) return undefined;
    const days = Math.round((startOfDay(at) - startOfDay(Date.now())) / DAY);
    return computed.how === "daysUntil" ? days : -days;
  }
  const numbers = [...found.map(numberOf), ...(computed.constant === undefined ? [] : [computed.constant])];
  if (numbers.some((number) => number === undefined)) return undefined;
  const result = (numbers as number[]).reduce((all, number) => {
    if (computed.how === "add") return all + number;
    if (computed.how === "subtract") return all - number;
    return computed.how === "multiply" ? all * number : all / number;
  });
  // 0.1 + 0.2 is 0.3 for people.
  return Number.isFinite(result) ? Number(result.toPrecision(12)) : undefined;
}

export function startOfDay(at: number) {
  const day = new Date(at);
  return new Date(day.getFullYear(), day.getMonth(), day.getDate()).getTime();
}

/** The text of a value by the format of its column. */
export function cellText(column: Column, value: Data): string {
  const { format } = column;
  if (format === undefined || value === null || value === undefined || value === "")
    return shownText(value, column.display);
  if (format.kind === "date" || format.kind === "datetime") return shownText(value, format.kind);
  if (format.kind === "relative") return relativeText(value) ?? shownText(value, column.display);
  const number = numberOf(value);
  // A number with more digits than can be computed with is shown as it was sent.
  const isExact = number !== undefined && !(isExactNumber(value) && Math.abs(number) > Number.MAX_SAFE_INTEGER);
  return isExact ? numberText(format, number) : textOf(value);
}

export function numberText(format: ValueFormat, sent: number): string {
  const number = format.cents === true ? sent / 100 : sent;
  const digits = format.digits;
  const exactly = digits === undefined ? {} : { minimumFractionDigits: digits, maximumFractionDigits: digits };
  if (format.kind === "currency")
    return digits === undefined
      ? number.toLocaleString(undefined, { style: "currency", currency: format.currency ?? "EUR" })
      : number.toLocaleString(undefined, {
          style: "currency",
          currency: format.currency ?? "EUR",
          minimumFractionDigits: digits,
          maximumFractionDigits: digits,
        });
  if (format.kind === "percent" || format.kind === "fraction") {
    const share = Number((format.kind === "percent" ? number : number * 100).toPrecision(12));
    return `${digits === undefined ? share.toLocaleString(undefined, { maximumFractionDigits: 2 }) : share.toLocaleString(undefined, exactly)} %`;
  }
  if (format.kind === "bytes") return bytesText(number);
  return digits === undefined ? number.toLocaleString() : number.toLocaleString(undefined, exactly);
}

export function bytesText(number: number): string {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  const step = number === 0 ? 0 : Math.min(units.length - 1, Math.floor(Math.log10(Math.abs(number)) / 3));
  const scaled = number / 10 ** (3 * step);
  return `${scaled.toLocaleString(undefined, { maximumFractionDigits: step === 0 ? 0 : 1 })} ${units.at(step)}`;
}

/** "3 days ago", "in 2 hours". */
export function relativeText(value: Data): string | undefined {
  const at = momentOf(value);
  if (Number.isNaN(at)) return undefined;
  const seconds = Math.round((at - Date.now()) / 1000);
  const size = Math.abs(seconds);
  const units: [number, string][] = [
    [31536000, "year"],
    [2592000, "month"],
    [86400, "day"],
    [3600, "hour"],
    [60, "minute"],
  ];
  const unit = units.find(([length]) => size >= length);
  if (unit === undefined) return "just now";
  const count = Math.floor(size / unit[0]);
  const words = `${count} ${unit[1]}${count === 1 ? "" : "s"}`;
  return seconds < 0 ? `${words} ago` : `in ${words}`;
}

/** Whether a row meets a condition. */
export function meets(list: List, condition: Condition, item: Data): boolean {
  const column = list.columns.find((one) => one.field === condition.field);
  const value = column === undefined ? fieldOf(item, condition.field) : cellOf(column, item);
  return passes(condition, value) !== (own(condition, "negated") === true);
}

export function passes(condition: Condition, value: Data): boolean {
  const wanted = condition.values ?? [];
  const isEmpty = value === null || value === undefined || value === "" || (Array.isArray(value) && value.length === 0);
  const text = textOf(value).toLowerCase();
  switch (condition.test ?? "is") {
    case "is":
      return wanted.some((one) =>
        typeof one === "boolean"
          ? (value === true || value === "true") === one
          : !isEmpty && text === textOf(one).toLowerCase(),
      );
    case "contains":
      return wanted.some((one) => text.includes(textOf(one).toLowerCase()));
    case "startsWith":
      return wanted.some((one) => text.startsWith(textOf(one).toLowerCase()));
    case "empty":
      return isEmpty;
    case "filled":
      return !isEmpty;
    case "above":
    case "atLeast":
    case "below":
    case "atMost":
      return comparesTo(condition.test ?? "", numberOf(value), numberOf(wanted.at(0)));
    default:
      return !isEmpty && isThen(condition.test ?? "", value, numberOf(wanted.at(0)) ?? 0);
  }
}

export function comparesTo(test: string, number: number | undefined, limit: number | undefined): boolean {
  if (number === undefined || limit === undefined) return false;
  if (test === "above") return number > limit;
  if (test === "atLeast") return number >= limit;
  return test === "below" ? number < limit : number <= limit;
}

/** Whether a moment lies where a condition says. A day without a time is past when it is over. */
export function isThen(test: string, value: Data, days: number): boolean {
  const day = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/.exec(textOf(value));
  const at = day === null ? momentOf(value) : new Date(Number(day[1]), Number(day[2]) - 1, Number(day[3])).getTime();
  if (Number.isNaN(at)) return false;
  const today = startOfDay(Date.now());
  const now = day === null ? Date.now() : today;
  const date = new Date(today);
  const from = (start: Date, end: Date) => at >= start.getTime() && at < end.getTime();
  switch (test) {
    case "past":
      return at < now;
    case "future":
      return at > now;
    case "today":
      return startOfDay(at) === today;
    case "thisWeek": {
      const monday = date.getDate() - ((date.getDay() + 6) % 7);
      const start = new Date(date.getFullYear(), date.getMonth(), monday);
      return from(start, new Date(date.getFullYear(), date.getMonth(), monday + 7));
    }
    case "thisMonth":
      return from(
        new Date(date.getFullYear(), date.getMonth(), 1),
        new Date(date.getFullYear(), date.getMonth() + 1, 1),
      );
    case "thisYear":
      return from(new Date(date.getFullYear(), 0, 1), new Date(date.getFullYear() + 1, 0, 1));
    case "lastDays":
      return at <= now && at >= today - days * DAY;
    case "nextDays":
      return at >= now && at < today + (days + 1) * DAY;
    default:
      return at < today - days * DAY;
  }
}

/** The class of a cell or row by the first rule that it meets. */
export function tintOf(list: List, item: Data, column?: Column): string {
  const isHere = (rule: ColorRule) =>
    column === undefined ? rule.wholeRow === true : rule.wholeRow !== true && rule.condition.field === column.field;
  const found = (list.colors ?? []).find((rule) => isHere(rule) && meets(list, rule.condition, item));
  return found === undefined ? "" : `dragoman-tint-${found.tint}`;
}

/** A condition in words, for the line above the rows. */
export function conditionText(list: List, condition: Condition): string {
  const label = list.columns.find((column) => column.field === condition.field)?.label ?? condition.field;
  const values = (condition.values ?? []).map(textOf).join(" or ");
  const words: Record<string, string> = {
    is: values,
    above: `above ${values}`,
    atLeast: `at least ${values}`,
    below: `below ${values}`,
    atMost: `at most ${values}`,
    contains: `with “${values}”`,
    startsWith: `begins with “${values}”`,
    empty: "empty",
    filled: "filled in",
    past: "in the past",
    future: "in the future",
    today: "today",
    thisWeek: "this week",
    thisMonth: "this month",
    thisYear: "this year",
    lastDays: `in the last ${values} days`,
    nextDays: `in the next ${values} days`,
    olderDays: `more than ${values} days ago`,
  };
  return `${label}: ${own(condition, "negated") === true ? "not " : ""}${own(words, condition.test ?? "is") ?? values}`;
}

/** The fixed filters of a list, with those of the saved view that is chosen. */
export function activeConditions(list: List, chosen: string | undefined): Condition[] {
  const saved = (list.saved ?? []).find((one) => one.title === chosen);
  return [...(list.conditions ?? []), ...(saved?.conditions ?? [])];
}

/** The drafts of a list with the parameters by which the API chooses the rows. */
export function withConditions(operation: Operation, conditions: Condition[], drafts: Values): Values {
  return conditions.reduce((all, condition) => {
    const input = (operation.inputs ?? []).find((one) => one.name === condition.parameter);
    if (input === undefined) return all;
    const values = condition.values ?? [];
    return withOwn(all, inputKey(input), draftOf(input, input.kind === "list" ? values : values.at(0)));
  }, drafts);
}
