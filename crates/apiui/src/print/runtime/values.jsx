// ---- Values: reading data that the API sent, and telling it in words ----

/** The value at a path of names; "*" stands for each item of a list. */
function valueAt(data, path) {
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
function fieldOf(item, field) {
  if (field === "") return item;
  const direct = own(item, field);
  return direct === undefined && field.includes(".") ? valueAt(item, field.split(".")) : direct;
}

/** `createdAt` → `Created at`. */
function labelOf(name) {
  const words = String(name)
    .replace(/([a-z0-9])([A-Z])/g, "$1 $2")
    .replace(/[^\p{L}\p{N}]+/gu, " ")
    .trim();
  if (words === "") return String(name);
  const lower = words.toLowerCase().replace(/(^| )(id|url|uri|api|ip|uuid|html|json|xml|http|isbn|iban|vat|sku)(?= |$)/g, (found) => found.toUpperCase());
  return lower.charAt(0).toUpperCase() + lower.slice(1);
}

/** A short text for any value. */
function textOf(value) {
  if (value === null || value === undefined) return "";
  if (typeof value === "boolean") return value ? "Yes" : "No";
  if (typeof value !== "object") return String(value);
  if (Array.isArray(value)) {
    const plain = value.every((item) => item === null || typeof item !== "object");
    if (plain && value.length <= 6) return value.map(textOf).join(", ");
    if (value.length <= 3) return value.map(textOf).join(", ");
    return `${value.length} entries`;
  }
  for (const name of ["name", "title", "label", "displayName", "login", "email", "key", "id"]) {
    const found = own(value, name);
    if (typeof found === "string" || typeof found === "number") return String(found);
  }
  const count = own(value, "totalCount");
  if (typeof count === "number") return String(count);
  const text = JSON.stringify(value) ?? "";
  return text.length > 80 ? `${text.slice(0, 80)}…` : text;
}

function jsonOf(value) {
  if (value instanceof Blob) return `A file of ${value.size} bytes`;
  if (typeof value === "string") return value;
  return JSON.stringify(value, null, 2) ?? "";
}

function dateOf(value, withTime) {
  const date = new Date(typeof value === "number" && value < 100000000000 ? value * 1000 : value);
  if (Number.isNaN(date.getTime())) return textOf(value);
  // A day without a time is the same day everywhere; it is read as midnight UTC.
  if (/^\d{4}-\d{2}-\d{2}$/.test(textOf(value))) return date.toLocaleDateString(undefined, { dateStyle: "medium", timeZone: "UTC" });
  return withTime ? date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : date.toLocaleDateString(undefined, { dateStyle: "medium" });
}

/** The text that a column shows for a value. */
function shownText(value, display) {
  const isDate = (display === "date" || display === "datetime") && textOf(value) !== "";
  return isDate ? dateOf(value, display === "datetime") : textOf(value);
}

/** Orders two values: numbers as numbers, everything else as text; what is missing comes last. */
function compareValues(first, second) {
  const missing = (value) => value === null || value === undefined || value === "";
  if (missing(first) || missing(second)) return missing(first) === missing(second) ? 0 : missing(first) ? 1 : -1;
  if (typeof first === "number" && typeof second === "number") return first - second;
  return textOf(first).localeCompare(textOf(second), undefined, { numeric: true });
}

/** Whether a text is in a value as it is sent or as its column shows it. */
function includesText(value, display, wanted) {
  const sent = value !== null && typeof value === "object" ? JSON.stringify(value) : textOf(value);
  return [String(sent), shownText(value, display)].some((text) => text.toLowerCase().includes(wanted.trim().toLowerCase()));
}
