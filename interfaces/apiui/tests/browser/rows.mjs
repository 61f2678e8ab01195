// Asks the script of a generated page which requests it would send to edit, delete and otherwise change one item: no
// browser, no API. Usage: node rows.mjs JOB   JOB holds script.js and plan.json. Writes JOB/rows.json.
import { readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";

const job = resolve(process.argv[2]);
const NAMES = "PLAN fieldsOf startDrafts buildCall provenFor refusalOf keysOf unknownKeys deletionOf graphInputs recordFields inputKey valueAt isEmptyChoice valueOf startBody editedBody shownBody";
const react = { createContext: () => ({}), Fragment: "", useState: () => [], useEffect() {}, useRef: () => ({}), useId: () => "", useContext: () => undefined };
globalThis.document = { getElementById: () => undefined };
globalThis.dragomanReact = { react, runtime: { jsx() {}, jsxs() {}, Fragment: "" }, mount() {} };
const script = readFileSync(join(job, "script.js"), "utf8");
writeFileSync(join(job, "script.mjs"), `${script}\n;globalThis.rows = { ${NAMES.replaceAll(" ", ", ")} };\n`);
await import(pathToFileURL(join(job, "script.mjs")).href);
const page = globalThis.rows;
const plan = page.PLAN;
const ui = { keyFields: {}, headers: [] };

/** An item whose every field has a value of its own, so that each value tells where it comes from. */
function itemOf(resource, number) {
  const columns = resource.list?.columns ?? [];
  const isNumber = (field) => columns.find((one) => one.field === field)?.display === "number";
  const key = (field) => (isNumber(field) ? 7000 + 100 * number + columns.findIndex((one) => one.field === field) : `${resource.id}-${field}-${number}`);
  const fields = new Set([...(resource.list?.columns ?? []).map((one) => one.field), ...(resource.keys ?? []).map((one) => one.field)]);
  const item = {};
  for (const field of fields) {
    if (field === "") return key("whole");
    const [name, inner] = field.split(".");
    if (inner !== undefined) item[name] = { ...item[name], [inner]: key(field) };
    else if (!(name in item)) item[name] = key(field);
  }
  return item;
}

/** The plain values of a call by their paths. */
function leaves(value, path = "") {
  if (value === null || typeof value !== "object") return value === undefined ? [] : [[path, value]];
  return Object.entries(value).flatMap(([name, inner]) => leaves(inner, path === "" ? name : `${path}.${name}`));
}

function given(operation, call) {
  return operation.queryText === undefined ? { path: call.path, ...leavesOf(call.body) } : call.body.variables;
}

const leavesOf = (body) => (body !== null && typeof body === "object" ? { body } : {});

/** The first plain text of a form that can be changed, changed. */
function touched(operation, drafts, hidden) {
  const changeIn = (input, draft, path) => {
    if (input.kind === "object") {
      for (const field of page.fieldsOf(input)) {
        const next = changeIn(field, draft?.[field.name], `${path}.${field.name}`);
        if (next !== undefined) return { ...draft, [field.name]: next };
      }
      return undefined;
    }
    return ["text", "multiline"].includes(input.kind) && !hidden.includes(path) && !/id$/i.test(path) ? "a new text" : undefined;
  };
  const record = (operation.record ?? []).at(0);
  for (const input of operation.inputs ?? []) {
    if (record !== undefined && input.name !== record) continue;
    const next = changeIn(input, drafts[page.inputKey(input)], input.name);
    if (next !== undefined) return { ...drafts, [page.inputKey(input)]: next };
  }
  return undefined;
}

function edit(resource, known, item) {
  const operation = plan.operations[resource.edits];
  if (operation.queryText === undefined) return undefined;
  const proven = page.provenFor(resource, resource.edits, known, true);
  const starts = page.startDrafts(operation, { ...page.graphInputs(operation, item), ...proven });
  const drafts = touched(operation, starts, Object.keys(proven)) ?? starts;
  const state = { item: page.recordFields(item), starts, known: proven, record: operation.record };
  return page.buildCall(operation, drafts, undefined, state);
}

const found = { edits: [], deletes: [], more: [], problems: [] };
const say = (problem) => found.problems.push(problem);
for (const resource of plan.resources) {
  const item = itemOf(resource, 1);
  const known = page.keysOf(ui, resource, item);
  const values = new Map(leaves(item).map(([path, value]) => [value, path]));
  const keysIn = (operation, call) => leaves(given(operation, call)).filter(([, value]) => values.has(value));
  const broken = [{}, null, ...["", null, undefined, {}, []].map((value) => Object.fromEntries((resource.keys ?? []).map((key) => [key.field.split(".")[0], value])))];
  if (resource.deletes !== undefined) {
    const operation = plan.operations[resource.deletes];
    const deletion = page.deletionOf(ui, resource, known, item);
    if (deletion === undefined) {
      const isOwn = page.unknownKeys(resource, known).length > 0;
      if (isOwn && operation.queryText !== undefined) say(`${operation.signature}: its key is not known`);
      else found.deletes.push(`${operation.signature}: asks`);
    } else {
      found.deletes.push(`${operation.signature}: ${keysIn(operation, deletion.sent).map(([path, value]) => `${path}=${values.get(value)}`).join(", ")}`);
      const refusal = page.refusalOf(operation, deletion.sent);
      if (refusal !== undefined) say(`${operation.signature}: ${refusal}`);
    }
    // Without its key nothing is deleted.
    for (const one of broken) {
      const sent = page.deletionOf(ui, resource, page.keysOf(ui, resource, one), one);
      if (sent !== undefined && operation.queryText !== undefined) say(`${operation.signature} deletes ${JSON.stringify(one)} by ${JSON.stringify(sent.sent.body)}`);
    }
  }
  if (resource.edits !== undefined && plan.operations[resource.edits].queryText !== undefined) {
    const operation = plan.operations[resource.edits];
    const call = edit(resource, known, item);
    const keys = (resource.keys ?? []).map((key) => key.parameter);
    const sent = keysIn(operation, call).filter(([path]) => keys.includes(path));
    found.edits.push(`${operation.signature}: ${sent.map(([path, value]) => `${path}=${values.get(value)}`).join(", ")}${JSON.stringify(call).includes("a new text") ? " changed" : ""}`);
    const refusal = page.refusalOf(operation, call);
    if (refusal !== undefined) say(`${operation.signature}: ${refusal}`);
    for (const one of broken) {
      const keyless = edit(resource, page.keysOf(ui, resource, one), one ?? {});
      if (page.refusalOf(operation, keyless) === undefined) say(`${operation.signature} edits ${JSON.stringify(one)} by ${JSON.stringify(keyless.body)}`);
    }
  }
  // Where the key is in the body, the form does not show it, and what is typed there is not sent.
  if (resource.edits !== undefined && plan.operations[resource.edits].queryText === undefined) {
    const operation = plan.operations[resource.edits];
    for (const [key] of operation.selectors ?? []) {
      const start = page.startBody(operation, item);
      const body = page.editedBody(operation, item, start, { ...start, [key]: "9999" });
      const call = page.buildCall(operation, page.startDrafts(operation, known), body, undefined);
      found.edits.push(`${operation.signature}: ${keysIn(operation, call).filter(([path]) => path === `body.${key}`).map(([path, value]) => `${path}=${values.get(value)}`).join(", ")}`);
      if (page.fieldsOf(page.shownBody(operation).input).some((field) => field.name === key)) say(`${operation.signature}: ${key} can be typed`);
      const keyless = page.editedBody(operation, {}, page.startBody(operation, {}), { ...start, [key]: "9999" });
      if (page.refusalOf(operation, { ...call, body: keyless }) === undefined) say(`${operation.signature} edits a record without a key`);
    }
  }
  // What the form of any operation begins with, on the page of the item and on that of the list.
  for (const index of resource.operations) {
    const operation = plan.operations[index];
    if (operation.writes !== true) continue;
    const isPart = [resource.edits, resource.deletes].includes(index);
    const prefilled = page.startDrafts(operation, page.provenFor(resource, index, known, true));
    const call = page.buildCall(operation, prefilled, undefined, undefined);
    if (!isPart) for (const [path, value] of keysIn(operation, call)) found.more.push(`${operation.signature}: ${path}=${values.get(value)}`);
    const listed = page.buildCall(operation, page.startDrafts(operation, page.provenFor(resource, index, known, false)), undefined, undefined);
    for (const [path, value] of keysIn(operation, listed)) say(`${operation.signature}: ${path} is ${value} on the page of the list`);
    // An empty form is refused where it would choose rows by nothing.
    const empty = page.buildCall(operation, page.startDrafts(operation, {}), undefined, undefined);
    const chooses = (operation.selectors ?? []).length > 0;
    // So is a filter that is written as text and says nothing.
    for (const text of ["{}", " [] ", "[{}]"]) {
      const filters = (operation.inputs ?? []).filter((input) => (operation.selectors ?? []).some((path) => path.length === 1 && path[0] === input.name));
      const written = filters.filter((input) => ["json", "text", "multiline"].includes(input.kind));
      const drafts = Object.fromEntries(written.map((input) => [page.inputKey(input), text]));
      const call = page.buildCall(operation, { ...page.startDrafts(operation, {}), ...drafts }, undefined, undefined);
      if (written.length > 0 && page.refusalOf(operation, call) === undefined) say(`${operation.signature} is sent with ${JSON.stringify(call.body)}`);
    }
    if (chooses && page.refusalOf(operation, empty) === undefined) say(`${operation.signature} is sent with ${JSON.stringify(empty.body)}`);
  }
}
writeFileSync(join(job, "rows.json"), JSON.stringify(found, null, 1));
