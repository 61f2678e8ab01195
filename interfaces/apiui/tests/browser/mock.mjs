// An API made from a normalised specification: it answers each operation with values that fit its schema, keeps lists
// of a known length, pages through them as the specification says, remembers what it was asked, and fails on demand.
import { sampler } from "./sample.mjs";

const TOTAL = 45;

export function mockApi(spec, plan, prefix) {
  const sample = sampler(spec);
  const lists = new Map(plan.resources.filter((resource) => resource.list).map((resource) => [plan.operations[resource.list.operation].signature, resource.list]));
  const details = new Map(plan.resources.filter((resource) => resource.detail !== undefined).map((resource) => [plan.operations[resource.detail].signature, resource]));
  const routes = spec.endpoints.map((endpoint) => ({ endpoint, pattern: patternOf(endpoint.path), literal: endpoint.path.replace(/\{[^}]*\}/g, "").length }));
  routes.sort((a, b) => b.literal - a.literal);
  const mock = { log: [], failWith: 0, refusal: undefined, refusals: 0, nothing: 0, isLong: false, needsCredentials: false, isAttacked: false, answer };

  function answer({ method, url, headers, body }) {
    const address = new URL(url, "http://mock");
    const path = address.pathname.slice(prefix.length);
    const query = Object.fromEntries(address.searchParams);
    const entry = { method, path, query, headers, body, signature: undefined };
    mock.log.push(entry);
    if (mock.failWith !== 0) return refuse(mock.failWith, "The mock was told to fail.");
    if (mock.refusal !== undefined && method !== "GET") {
      mock.refusals += 1;
      return json(422, mock.refusal);
    }
    if (mock.nothing === 204) return { status: 204, headers: {}, body: "" };
    if (mock.nothing === 200) return json(200, null);
    if (mock.needsCredentials && !hasCredentials(entry)) return refuse(401, "The mock wants credentials.");
    return plan.graphql ? graphAnswer(entry) : restAnswer(entry);
  }

  /** An answer that is meant to be an error. */
  function refuse(status, message) {
    mock.refusals += 1;
    return json(status, { message });
  }

  function hasCredentials({ headers, query }) {
    return plan.schemes.some((scheme) => {
      if (scheme.kind !== "apiKey") return headers.authorization !== undefined;
      if (scheme.place === "query") return query[scheme.parameter] !== undefined;
      return headers[scheme.parameter.toLowerCase()] !== undefined;
    });
  }

  function restAnswer(entry) {
    const route = routes.find(({ endpoint, pattern }) => endpoint.method === entry.method && pattern.expression.test(entry.path));
    if (route === undefined) return json(404, { message: `The mock knows no ${entry.method} ${entry.path}.` });
    const { endpoint, pattern } = route;
    entry.signature = `${endpoint.method} ${endpoint.path}`;
    const values = pattern.expression.exec(entry.path).slice(1).map(decodeURIComponent);
    const parameters = Object.fromEntries(pattern.names.map((name, index) => [name, values[index]]));
    const [status, response] = success(endpoint);
    if (response?.schema === undefined) return { status, headers: {}, body: "" };
    if (response.contentType !== undefined && !/json|\*/.test(response.contentType)) {
      const known = KNOWN_ANSWERS[response.contentType];
      if (known !== undefined) return { status, headers: { "Content-Type": response.contentType }, ...known };
      const isText = /^text|xml/.test(response.contentType);
      return { status, headers: { "Content-Type": response.contentType }, body: isText ? "a text" : Buffer.from([1, 2, 3]) };
    }
    const list = entry.method === "GET" ? lists.get(entry.signature) : undefined;
    if (list !== undefined) return listAnswer(list, entry, (number) => sample(response.schema, number), status);
    const resource = details.get(entry.signature);
    return json(status, sample(response.schema, resource === undefined ? 0 : numberOf(resource, parameters)));
  }

  /** Which row of the list has these keys. */
  function numberOf(resource, parameters) {
    const list = resource.list;
    if (list === undefined) return 0;
    const operation = plan.operations[list.operation];
    const whole = wholeOf(operation);
    for (let number = 0; number < TOTAL; number += 1) {
      const item = first(at(whole(number), list.items ?? []));
      const fits = (resource.keys ?? []).every((key) => parameters[key.parameter] === undefined || String(item?.[key.field]) === parameters[key.parameter]);
      if (fits) return number;
    }
    return 0;
  }

  function wholeOf(operation) {
    const endpoint = spec.endpoints.find((one) => `${one.method} ${one.path}` === operation.signature);
    if (endpoint !== undefined) return (number) => sample(success(endpoint)[1]?.schema, number);
    const graph = [...spec.queries, ...spec.mutations, ...spec.subscriptions].find((one) => `${one.type} ${one.name}` === operation.signature);
    return (number) => sample(graph.returnType, number, graph.name);
  }

  function listAnswer(list, entry, whole, status, given = entry.query) {
    const paging = list.paging;
    const { maximum } = plan.operations[list.operation].inputs?.find((input) => input.name === paging?.sizeParameter) ?? {};
    const size = Number(given[paging?.sizeParameter] ?? (paging === undefined ? TOTAL : Math.min(20, maximum ?? 20)));
    if (size > (maximum ?? size)) return json(400, { message: `The mock sends at most ${maximum} at a time.` });
    const mover = paging?.parameter ?? "from";
    const token = paging === undefined ? undefined : given[mover];
    const start = paging === undefined ? 0 : { page: (Number(token ?? paging.first ?? 0) - (paging.first ?? 0)) * size, offset: Number(token ?? 0) }[paging.style] ?? (token === undefined ? 0 : cursorStart(list, whole, token));
    const numbers = Array.from({ length: TOTAL }, (_, number) => number).slice(start, start + size);
    const path = list.items ?? [];
    const isFound = (row) => given.search === undefined || JSON.stringify(row).includes(given.search);
    const rows = numbers.flatMap((number) => containerOf(whole(number), path) ?? []).filter(isFound).map((row) => (mock.isLong ? withLongTexts(row) : row));
    let body = withContainer(whole(0), path, rows);
    const hasMore = start + size < TOTAL;
    const headers = {};
    if (list.total?.length > 0) body = set(body, list.total, TOTAL);
    if (paging?.more?.length > 0) body = set(body, paging.more, hasMore);
    if (paging?.style === "link") {
      const next = `http://mock${entry.path}?${new URLSearchParams({ ...entry.query, [mover]: String(start + size) })}`;
      if (paging.next?.length > 0) body = set(body, paging.next, hasMore ? next : null);
      else if (hasMore) headers.Link = `<${next}>; rel="next"`;
    } else if (paging?.next?.length > 0) {
      body = set(body, paging.next, hasMore ? `cursor-${start + size}` : null);
    }
    return json(status, body, headers);
  }

  function cursorStart(list, whole, token) {
    if (token.startsWith("cursor-")) return Number(token.slice(7));
    if (list.paging.style === "link") return Number(token);
    for (let number = 0; number < TOTAL; number += 1) {
      if (String(first(at(whole(number), list.items ?? []))?.[list.paging.fromLast]) === token) return number + 1;
    }
    return 0;
  }

  function graphAnswer(entry) {
    const call = JSON.parse(entry.body);
    const operation = plan.operations.find((one) => one.queryText === call.query);
    if (operation === undefined) return json(400, { errors: [{ message: "The mock knows no such document." }] });
    entry.signature = operation.signature;
    entry.query = call.variables ?? {};
    const whole = wholeOf(operation);
    const list = lists.get(operation.signature);
    if (operation.signature.startsWith("subscription ") && /text\/event-stream/.test(entry.headers.accept ?? "")) {
      const event = (number) => `event: next\ndata: ${JSON.stringify(set({ data: {} }, operation.result, whole(number)))}\n\n`;
      return { status: 200, headers: { "Content-Type": "text/event-stream" }, parts: [event(0), event(1)] };
    }
    const answered = list === undefined ? json(200, whole(0)) : listAnswer(list, entry, whole, 200, entry.query);
    return json(200, set({ data: {} }, operation.result, JSON.parse(answered.body)));
  }

  return mock;
}

/** Each text is a long one, with words from right to left and a word that has no end; keys stay. */
function withLongTexts(row) {
  if (row === null || typeof row !== "object" || Array.isArray(row)) return row;
  const long = `نص طويل جدا ${"word ".repeat(30)}${"x".repeat(400)}`;
  return Object.fromEntries(Object.entries(row).map(([name, value]) => [name, typeof value === "string" && !/id$|uuid$|key$/i.test(name) ? long : value]));
}

/** Answers that are not JSON and that a page shows as what they are. */
const KNOWN_ANSWERS = {
  "image/png": { body: Buffer.from("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==", "base64") },
  "text/csv": { body: 'name,amount\r\n"Miller, ""Max""",7\r\nSmith,8\r\n' },
  // The last event stays open until the reader goes.
  "text/event-stream": { parts: ["event: visit\ndata: {\"room\": 1}\n\n", "data: {\"room\"", ": 2}\n\n"] },
};

function success(endpoint) {
  const found = Object.entries(endpoint.responses).find(([status]) => /^2/.test(status)) ?? Object.entries(endpoint.responses).find(([status]) => status === "default");
  if (found === undefined) return [200, undefined];
  return [/^\d+$/.test(found[0]) ? Number(found[0]) : 200, found[1]];
}

function patternOf(path) {
  const names = [];
  const escaped = path.split(/(\{[^}]*\})/).map((part) => {
    if (!part.startsWith("{")) return part.replace(/[.*+?^$()|[\]\\]/g, "\\$&");
    names.push(part.slice(1, -1));
    return "([^/]*)";
  });
  return { expression: new RegExp(`^${escaped.join("")}$`), names };
}

function json(status, value, headers = {}) {
  return { status, headers: { "Content-Type": "application/json", ...headers }, body: JSON.stringify(value) };
}

function at(value, path) {
  let found = value;
  for (const name of path) {
    if (name === "*") return Array.isArray(found) ? found.map((one) => at(one, path.slice(path.indexOf("*") + 1))) : undefined;
    found = found?.[name];
  }
  return found;
}

function first(value) {
  return Array.isArray(value) ? value[0] : value;
}

/** The list that the items are in: for `edges * node` that is `edges`. */
function containerOf(value, path) {
  const star = path.indexOf("*");
  return at(value, star < 0 ? path : path.slice(0, star));
}

function withContainer(value, path, rows) {
  const star = path.indexOf("*");
  return set(value, star < 0 ? path : path.slice(0, star), rows);
}

function set(value, path, inner) {
  if (path.length === 0) return inner;
  const [name, ...rest] = path;
  const before = value !== null && typeof value === "object" && !Array.isArray(value) ? value : {};
  return { ...before, [name]: set(before[name], rest, inner) };
}
