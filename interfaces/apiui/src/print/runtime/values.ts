// ---- Values: reading data that the API sent, and telling it in words ----

import { exactJsonText, isExactNumber, own, ownEntries } from "./vetted";
import type { Data } from "./types";

/** Whether a value holds others. */
export function isNested(value: Data) {
  return value !== null && typeof value === "object" && !isExactNumber(value);
}

/** A number, text or boolean as it is written; a number has all its digits. */
export function scalarText(value: Data) {
  return isExactNumber(value) ? String(own(value, "digits")) : String(value);
}

/** The value at a path of names; "*" stands for each item of a list. */
export function valueAt(data: Data, path: string[]): Data {
  let value = data;
  for (let at = 0; at < path.length; at += 1) {
    const name = path.at(at);
    if (name === "*") {
      const rest = path.slice(at + 1);
      return Array.isArray(value) ? value.map((item) => valueAt(item, rest)) : undefined;
    }
    value = own(value, name);
  }
  return value;
}

/** A field of an item: by its own name, or by a dotted path into it; "" is the item itself. */
export function fieldOf(item: Data, field: string) {
  if (field === "") return item;
  const direct = own(item, field);
  return direct === undefined && field.includes(".") ? valueAt(item, field.split(".")) : direct;
}

/** An answer may wrap the one item it holds. */
export function wholeItem(result: Data) {
  const entries = ownEntries(result);
  const inner = entries.length === 1 ? entries[0][1] : own(result, "data");
  return isNested(inner) && !Array.isArray(inner) && !(inner instanceof Blob) ? inner : result;
}

/** Words that are not written in lower case. */
export const WRITTEN =
  "ID URL URI API IP IPv4 IPv6 UUID HTML JSON XML HTTP HTTPS ISBN IBAN VAT SKU CVE CIDR DNS SSH TLS SSL VPN VM CPU GPU RAM AWS SQL CSV PDF SSO MFA OTP UTC SHA GPS IMEI BIC SMTP TCP UDP SMS UI OAuth GraphQL GitHub MAC OS UID EIN SSN CVSS CPE SLA QR".split(
    " ",
  );

/** `createdAt` → `Created at`. */
export function labelOf(name: unknown) {
  const words = String(name)
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/([A-Z])([A-Z][a-z]{2})/g, "$1 $2")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  if (words === "") return String(name);
  // `CVEs` and `urls` are more than one of them.
  const isAcronym = (word: string, all: Data) =>
    all.length > 1 ? /^[A-Z][A-Z0-9]+s?$/.test(word) : /^[A-Z][A-Z0-9]{1,4}s?$/.test(word);
  const written = (word: string) => WRITTEN.find((one) => one.toLowerCase() === word.toLowerCase());
  const plural = (word: string) => {
    const one = /^.{2,}s$/.test(word) ? written(word.slice(0, -1)) : undefined;
    return one === undefined ? undefined : `${one}s`;
  };
  const shown = words
    .split(" ")
    .map((word, index, all) => written(word) ?? plural(word) ?? (isAcronym(word, all) ? word : word.toLowerCase()));
  const text = shown.join(" ");
  return WRITTEN.includes(shown[0]) || plural(shown[0]) === shown[0]
    ? text
    : text.charAt(0).toUpperCase() + text.slice(1);
}

/** A name inside of a sentence: `API keys` keeps its capitals, `Orders` does not. */
export function inText(name: string) {
  const hasCapitals = (word: string) => /^[A-Z0-9]{2,}s?$|[a-z][A-Z]/.test(word);
  return name
    .split(" ")
    .map((word) => (hasCapitals(word) ? word : word.toLowerCase()))
    .join(" ");
}

/** A short text for any value. */
export function textOf(value: Data): string {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "Yes" : "No";
  if (!isNested(value)) return scalarText(value);
  if (Array.isArray(value)) {
    const plain = value.every((item) => !isNested(item));
    if (plain && value.length <= 6) return value.map(textOf).join(", ");
    if (value.length <= 3) return value.map(textOf).join(", ");
    return `${value.length} entries`;
  }
  const person = ["firstName", "first_name", "lastName", "last_name"].map((name) => own(value, name));
  const parts = person.filter((part) => typeof part === "string" && part !== "");
  if (parts.length === 2 && typeof own(value, "name") !== "string") return parts.join(" ");
  for (const name of ["name", "title", "label", "displayName", "login", "email", "key", "id"]) {
    const found = own(value, name);
    if (typeof found === "string" || typeof found === "number" || isExactNumber(found)) return scalarText(found);
  }
  const count = own(value, "totalCount");
  if (typeof count === "number") return String(count);
  const text = exactJsonText(value) ?? "";
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

export function jsonOf(value: Data) {
  if (value instanceof Blob) return `A file of ${value.size} bytes`;
  if (typeof value === "string") return value;
  return exactJsonText(value, 2) ?? "";
}

export function dateOf(sent: Data, withTime: boolean) {
  // Seconds and milliseconds since 1970 may come as text. A number that is no moment of these decades is a number.
  const isCount = isExactNumber(sent) || (typeof sent === "string" && /^[0-9]{10}([0-9]{3})?$/.test(sent));
  const value = isCount ? Number(scalarText(sent)) : sent;
  if (typeof value === "number" && Math.abs(value) < 100000000) return textOf(sent);
  const date = new Date(typeof value === "number" && value < 100000000000 ? value * 1000 : value);
  if (Number.isNaN(date.getTime())) return textOf(value);
  // A day without a time is the same day everywhere; it is read as midnight UTC.
  if (/^\d{4}-\d{2}-\d{2}$/.test(textOf(value)))
    return date.toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" });
  return withTime
    ? date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" })
    : date.toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** The moment that a value names, in milliseconds. */
export function momentOf(value: Data) {
  const number = Number(scalarText(value));
  if (value === null || value === undefined || isNested(value)) return Number.NaN;
  return Number.isNaN(number) ? new Date(value).getTime() : number < 100000000000 ? number * 1000 : number;
}

/** The text that a column shows for a value. */
export function shownText(value: Data, display: string) {
  const isDate = (display === "date" || display === "datetime") && textOf(value) !== "";
  return isDate ? dateOf(value, display === "datetime") : textOf(value);
}

/** Orders two values: numbers as numbers, everything else as text; what is missing comes last. */
export function compareValues(first: Data, second: Data) {
  const missing = (value: Data) => value === null || value === undefined || value === "";
  if (missing(first) || missing(second)) return missing(first) === missing(second) ? 0 : missing(first) ? 1 : -1;
  const isNumber = (value: Data) => typeof value === "number" || isExactNumber(value);
  if (isNumber(first) && isNumber(second)) return compareNumbers(scalarText(first), scalarText(second));
  return textOf(first).localeCompare(textOf(second), undefined, { numeric: true });
}

/** Whole numbers of any length are compared by all their digits. */
export function compareNumbers(first: string, second: string) {
  const isWhole = (text: string) => /^-?[0-9]+$/.test(text);
  if (!isWhole(first) || !isWhole(second)) return Number(first) - Number(second);
  const [one, other] = [BigInt(first), BigInt(second)];
  return one < other ? -1 : one > other ? 1 : 0;
}

/** Whether a text is in a value as it is sent or as its column shows it. */
export function includesText(value: Data, display: string, wanted: string) {
  const sent = isNested(value) ? exactJsonText(value) : textOf(value);
  return [String(sent), shownText(value, display)].some((text) =>
    text.toLowerCase().includes(wanted.trim().toLowerCase()),
  );
}
