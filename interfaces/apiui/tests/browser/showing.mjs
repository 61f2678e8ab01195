// Asks the script of a generated page what it shows for some rows, and which requests its filters and buttons send: no browser,
// no API. Usage: node showing.mjs JOB   JOB holds script.js. Fails with a message where something is wrong.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const job = resolve(process.argv[2]);
const NAMES = "PLAN cellOf cellText meets tintOf passes activeConditions withConditions conditionText listCall startDrafts actionCall keysOf namesOf columnName pagingNames";
const react = { createContext: () => ({}), Fragment: "", useState: () => [], useEffect() {}, useRef: () => ({}), useId: () => "", useContext: () => undefined };
globalThis.document = { getElementById: () => undefined };
globalThis.dragomanReact = { react, runtime: { jsx() {}, jsxs() {}, Fragment: "" }, mount() {} };
const script = readFileSync(join(job, "script.js"), "utf8");
writeFileSync(join(job, "script.mjs"), `${script}\n;globalThis.showing = { ${NAMES.replaceAll(" ", ", ")} };\n`);
await import(pathToFileURL(join(job, "script.mjs")).href);
const page = globalThis.showing;
const viewOf = (title) => page.PLAN.resources.find((resource) => resource.title === title);
const ui = { keyFields: {}, headers: [] };
const day = (days) => new Date(Date.now() + days * 86400000).toISOString();
const local = (days) => {
  const at = new Date(Date.now() + days * 86400000);
  return `${at.getFullYear()}-${String(at.getMonth() + 1).padStart(2, "0")}-${String(at.getDate()).padStart(2, "0")}`;
};

// A fixed filter that the API knows is a parameter; one that it does not know is applied to the rows.
const orders = viewOf("Orders");
const operation = page.PLAN.operations[orders.list.operation];
const conditions = page.activeConditions(orders.list, undefined);
const asked = page.withConditions(operation, conditions, page.startDrafts(operation, {}));
const call = page.listCall(operation, orders.list, asked, 20, { index: 0 });
assert.equal(call.query.status, "open");
const isShown = (item) => conditions.filter((one) => one.parameter === undefined).every((one) => page.meets(orders.list, one, item));
assert.equal(isShown({ total: 150, status: "open" }), true);
assert.equal(isShown({ total: 50 }), false);
assert.equal(isShown({}), false, "a row without the number does not pass");
assert.match(page.conditionText(orders.list, conditions[0]), /^Status: open$/);

// Tabs add their conditions to the fixed ones.
assert.equal(page.activeConditions(orders.list, "Late").length, conditions.length + 1);
const late = page.activeConditions(orders.list, "Late").at(-1);
assert.deepEqual([-1, 0, 1].map((days) => page.meets(orders.list, late, { dueDate: local(days) })), [true, false, false], "a day is past when it is over");
assert.equal(page.meets(orders.list, late, {}), false, "what has no date is not late");

// Formats, computed columns, colors.
const column = (view, label) => view.list.columns.find((one) => one.label === label);
const total = column(orders, "Total");
assert.match(page.cellText(total, 1234.5).replace(/ | /g, " "), /€ ?1,234\.50|1\.234,50 ?€/);
assert.equal(page.cellText(total, null), "");
assert.equal(page.cellText(column(orders, "Created at"), day(-3.1)), "3 days ago");
assert.equal(page.cellText(column(orders, "Created at"), "no date"), "no date");
const customers = viewOf("Customers");
assert.equal(page.cellOf(column(customers, "Full name"), { firstName: "Ann", lastName: "Lee" }), "Ann Lee");
const products = viewOf("Products");
const worth = column(products, "Stock value");
assert.equal(page.cellOf(worth, { price: 0.1, stock: 3 }), 0.3);
assert.equal(page.cellOf(worth, { price: 0.1 }), undefined, "nothing is computed from nothing");
assert.equal(page.tintOf(orders.list, { status: "cancelled" }), "dragoman-tint-red");
assert.equal(page.tintOf(orders.list, { status: "open" }), "");

// Tests of conditions.
const passes = (test, value, ...values) => page.passes({ field: "x", test, values }, value);
assert.equal(passes("is", "Open", "open"), true);
assert.equal(passes("is", undefined, false), true, "a flag that is not sent is not set");
assert.equal(passes("contains", "Example", "amp"), true);
assert.equal(passes("empty", []), true);
assert.equal(passes("above", "12", 9), true);
assert.equal(passes("lastDays", day(-6.5), 7), true);
assert.equal(passes("lastDays", day(-9), 7), false);
assert.equal(passes("nextDays", day(3), 7), true);
assert.equal(passes("olderDays", day(-31), 30), true);
assert.equal(passes("today", new Date().toISOString()), true);

// The name of a customer stands for its key.
const names = page.namesOf(customers, { phase: "done", result: [{ id: 7, firstName: "Ann", lastName: "Lee", email: "ann@example.com" }] });
assert.equal(page.columnName(orders, column(orders, "Customer ID"), { customerId: 7 }, names), Object.values(names)[0]);
assert.equal(page.columnName(orders, column(orders, "Customer ID"), { customerId: 8 }, names), undefined);

// A button sends its constants to the row that it is pressed for, and nothing without the row's key.
const ship = orders.list.actions.find((action) => action.title === "Ship");
const item = { id: 42, status: "paid", total: 5 };
const sent = page.actionCall(ui, orders, ship, page.keysOf(ui, orders, item), item);
assert.deepEqual([sent.operation.method, sent.sent.path, JSON.stringify(sent.sent.body)], ["PATCH", "/orders/42", '{"status":"shipped"}']);
assert.equal(page.actionCall(ui, orders, ship, page.keysOf(ui, orders, {}), {}), undefined);
console.log("shown");
