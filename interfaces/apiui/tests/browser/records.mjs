// Random records as JSON text, with what edits are known to damage, and random touches of a form that shows them.

/** The same numbers for the same seed. */
export function randomFor(seed) {
  let state = (seed + 1) * 2654435761;
  const next = () => {
    state = (state + 0x6d2b79f5) | 0;
    let value = Math.imul(state ^ (state >>> 15), 1 | state);
    value = (value + Math.imul(value ^ (value >>> 7), 61 | value)) ^ value;
    return ((value ^ (value >>> 14)) >>> 0) / 4294967296;
  };
  const pick = (list) => list[Math.floor(next() * list.length)];
  return { next, pick, chance: (share) => next() < share, whole: (limit) => Math.floor(next() * limit) };
}

const digits = (random) => random.pick(["0", "7", "-3", "42", "9007199254740993", "-9223372036854775808", "18446744073709551615", "123456789012345678901234567890"]);
const decimal = (random) => random.pick(["0.1", "1.0", "2.50", "1e3", "-0", "3.141592653589793238462643", "12345678.123456789", "0.30000000000000004", "1E-7", "100"]);
const moment = (random) => JSON.stringify(random.pick(["2026-03-04T05:06:07Z", "2026-03-04T05:06:07.120Z", "2026-03-04T05:06:07.123456Z", "2026-12-31T23:59:59+05:30", "2026-01-01T00:00:00-08:00", "2026-02-03T04:05:06.000+00:00", "2026-02-03T04:05:06", "0001-01-01T00:00:00Z", "soon"]));
const text = (random) => JSON.stringify(random.pick(["", "plain", "two  spaces", " edges ", "line\nbreak", "quote \" and \\", "<b>&amp;", "عربي", "emoji 😀", "null", "0", "true", "a".repeat(300)]));
const maybe = (random, make) => random.pick([undefined, "null", make(), make(), make()]);

function object(pairs) {
  return `{${pairs.filter(([, value]) => value !== undefined).map(([name, value]) => `${JSON.stringify(name)}:${value}`).join(",")}}`;
}

function unknown(random) {
  return random.pick([undefined, digits(random), decimal(random), text(random), `[${digits(random)},null,{"deep":${decimal(random)}}]`, object([["inner", digits(random)], ["list", "[]"], ["none", "null"]])]);
}

export function record(random, kind, id) {
  return kind === "put" ? account(random, id) : entry(random, id);
}

function account(random, id) {
  const line = () => object([["code", text(random)], ["amount", maybe(random, () => decimal(random))], ["locked", random.pick(["true", "false", undefined])], ["hidden", unknown(random)]]);
  return object([
    ["id", id],
    ["createdAt", moment(random)],
    ["title", text(random)],
    ["owner", maybe(random, () => digits(random))],
    ["limit", maybe(random, () => decimal(random))],
    ["opensAt", maybe(random, () => moment(random))],
    ["closesAt", maybe(random, () => moment(random))],
    ["day", random.pick([undefined, '"2026-02-28"', '"2026-02-28T00:00:00Z"', "null"])],
    ["hour", random.pick([undefined, '"12:30:15"', '"12:30:15Z"', '"07:00"'])],
    ["kind", random.pick([undefined, '"current"', '"fixed_term"', '"a new kind"', "null"])],
    ["isOpen", random.pick([undefined, "true", "false", "null"])],
    ["remark", maybe(random, () => text(random))],
    ["tags", random.pick([undefined, "[]", "null", '["a"]', '["a","","b"]'])],
    ["address", random.pick([undefined, "null", "{}", object([["street", text(random)], ["number", digits(random)], ["geo", object([["lat", decimal(random)], ["lon", decimal(random)], ["source", unknown(random)]])], ["unit", unknown(random)]])])],
    ["limits", random.pick([undefined, "{}", object([["day", decimal(random)], ["10", digits(random)]])])],
    ["lines", random.pick([undefined, "[]", `[${line()}]`, `[${line()},${line()},${line()}]`])],
    ["extra", unknown(random)],
    ["zone", unknown(random)],
    ["__proto__", random.pick([undefined, undefined, '{"x":1}'])],
    ["unknownField", unknown(random)],
  ]);
}

function entry(random, id) {
  return object([
    ["id", JSON.stringify(id)],
    ["subject", maybe(random, () => text(random))],
    ["amount", maybe(random, () => decimal(random))],
    ["bookedAt", maybe(random, () => moment(random))],
    ["count", maybe(random, () => digits(random))],
    ["accountId", maybe(random, () => digits(random))],
    ["isFinal", random.pick([undefined, "true", "false", "null"])],
    ["place", random.pick([undefined, "null", object([["city", text(random)], ["floor", digits(random)], ["wing", unknown(random)]])])],
    ["parts", random.pick([undefined, "[]", `[${digits(random)},${digits(random)}]`])],
    ["unknownField", unknown(random)],
  ]);
}

const field = (form, label) => form.getByLabel(label, { exact: true });
const state = (form, words, label) => form.getByRole("button", { name: `${words}: ${label}`, exact: true });

/** Up to `count` touches of different fields, each with the value that the record then has. */
export function touches(random, kind, tree, count) {
  const all = (kind === "put" ? ACCOUNT : ENTRY).flatMap((make) => make(random, tree) ?? []);
  const chosen = [];
  while (chosen.length < count && all.length > 0) {
    const [touch] = all.splice(random.whole(all.length), 1);
    if (!chosen.some((one) => one.path[0] === touch.path[0])) chosen.push(touch);
  }
  return chosen;
}

const isText = (value) => typeof value === "string";

/** A text that gets another one, or none. */
const textTouch = (name, label) => (random, tree) => {
  const value = tree.get(name);
  if (random.chance(0.3) && isText(value) && value !== "") return [{ path: [name], value: "", apply: (form) => field(form, label).fill("") }];
  return [{ path: [name], value: "a new text", apply: (form) => field(form, label).fill("a new text") }];
};
const numberTouch = (name, label) => (random) => {
  const value = random.pick(["5", "9007199254740995", "-12"]);
  return [{ path: [name], value: { digits: value }, apply: (form) => field(form, label).fill(value) }];
};
const nullTouch = (name, label) => (random, tree) => (tree.get(name) === undefined || tree.get(name) === null ? undefined : [{ path: [name], value: null, apply: (form) => state(form, "Set to null", label).click() }]);
const absentTouch = (name, label) => (random, tree) => (tree.get(name) === undefined || tree.get(name) === "" ? undefined : [{ path: [name], value: undefined, apply: (form) => state(form, "Leave out", label).click() }]);

const ACCOUNT = [
  (random) => [{ path: ["title"], value: `title ${random.whole(1000) + 1}`, apply(form) { return field(form, "Title *").fill(this.value); } }],
  numberTouch("owner", "Owner"),
  nullTouch("limit", "Limit"),
  textTouch("remark", "Remark"),
  nullTouch("remark", "Remark"),
  absentTouch("remark", "Remark"),
  (random, tree) => (tree.get("remark") === null ? [{ path: ["remark"], value: "", apply: (form) => state(form, "Set to empty text", "Remark").click() }] : undefined),
  () => [{ path: ["kind"], value: "savings", apply: (form) => field(form, "Kind").selectOption('"savings"') }],
  (random, tree) => [{ path: ["isOpen"], value: tree.get("isOpen") !== true, apply: (form) => field(form, "Is open").selectOption(String(tree.get("isOpen") !== true)) }],
  (random, tree) => (/^2026-03-04T05:06:07Z$/.test(tree.get("opensAt")) ? [{ path: ["opensAt"], value: "2026-03-04T08:09:10Z", apply: (form) => field(form, "Opens at").fill("2026-03-04T08:09:10") }] : undefined),
  (random, tree) => (/T05:06:07\.123456Z$/.test(tree.get("opensAt")) ? [{ path: ["opensAt"], value: "2026-03-04T05:06:07.123457Z", apply: (form) => field(form, "Opens at").fill("2026-03-04T05:06:07.123457Z") }] : undefined),
  absentTouch("closesAt", "Closes at"),
  (random, tree) => (tree.get("address")?.get?.("street") === undefined ? undefined : [{ path: ["address", "street"], value: "Main St 1", apply: (form) => field(form, "Street").fill("Main St 1") }]),
  (random, tree) => (tree.get("address")?.get?.("geo") === undefined ? undefined : [{ path: ["address", "geo", "lat"], value: { digits: "51.5" }, apply: (form) => field(form, "Lat").fill("51.5") }]),
  (random, tree) => (Array.isArray(tree.get("tags")) && tree.get("tags").length > 1 ? [{ path: ["tags", 1], value: "changed", apply: (form) => field(form, "Tags 2 *").fill("changed") }] : undefined),
  (random, tree) => (Array.isArray(tree.get("lines")) && tree.get("lines").length > 1 ? [{ path: ["lines", 0], value: undefined, apply: (form) => form.getByRole("group", { name: "Lines", exact: true }).getByRole("button", { name: "Remove", exact: true }).first().click() }] : undefined),
  (random, tree) => (Array.isArray(tree.get("lines")) && tree.get("lines").length === 1 && isText(tree.get("lines")[0].get("code")) ? [{ path: ["lines", 0, "code"], value: "C-9", apply: (form) => field(form, "Code").fill("C-9") }] : undefined),
];

const ENTRY = [
  textTouch("subject", "Subject"),
  nullTouch("subject", "Subject"),
  numberTouch("count", "Count"),
  // A reference: the list cannot be loaded, so what is typed is the key.
  numberTouch("accountId", "Account ID"),
  numberTouch("amount", "Amount"),
  (random, tree) => [{ path: ["isFinal"], value: tree.get("isFinal") !== true, apply: (form) => field(form, "Is final").selectOption(String(tree.get("isFinal") !== true)) }],
  (random, tree) => (tree.get("place")?.get?.("city") === undefined ? undefined : [{ path: ["place", "city"], value: "Paris", apply: (form) => field(form, "City").fill("Paris") }]),
  (random, tree) => (tree.get("parts")?.length > 1 ? [{ path: ["parts", 0], value: { digits: "18446744073709551614" }, apply: (form) => field(form, "Parts 1 *").fill("18446744073709551614") }] : undefined),
];
