// ---- Calls: from drafts to a request, and from a response to a state ----

/** The key of an input among the drafts of its operation: a name may appear in more than one place. */
function inputKey(input) {
  return `${input.place ?? "query"} ${input.name}`;
}

function startDrafts(operation, known) {
  return (operation.inputs ?? []).reduce((drafts, input) => {
    const given = own(known, input.name);
    const draft = given === undefined ? startDraft(input, input.required === true) : draftOf(input, given);
    return withOwn(drafts, inputKey(input), draft);
  }, {});
}

function missingInputs(operation, drafts) {
  return (operation.inputs ?? []).filter((input) => inputProblems(input, own(drafts, inputKey(input))).length > 0);
}

/** What is wrong with a parameter. A part of a path must not be empty or lead to another place. */
function inputProblems(input, draft, start) {
  const text = input.place === "path" ? textOf(valueOf(input, draft)) : undefined;
  if (["", ".", ".."].includes(text)) return [{ place: inputKey(input), message: text === "" ? "This is required." : "This cannot be part of an address." }];
  return problemsOf(input, draft, inputKey(input), start);
}

function encoded(value) {
  return encodeURIComponent(isNested(value) ? exactJsonText(value) : scalarText(value));
}

/** A path parameter in the styles simple, label and matrix. */
function pathText(input, value) {
  const list = Array.isArray(value) ? value : undefined;
  const pairs = list === undefined && isNested(value) ? ownEntries(value) : undefined;
  const joined = (separator, between) => pairs.map(([name, one]) => `${encoded(name)}${between}${encoded(one)}`).join(separator);
  if (input.format === "label") {
    const dot = input.explode === true ? "." : ",";
    if (pairs) return `.${input.explode === true ? joined(".", "=") : joined(",", ",")}`;
    return `.${list ? list.map(encoded).join(dot) : encoded(value)}`;
  }
  if (input.format === "matrix") {
    const name = encoded(input.name);
    if (pairs) return input.explode === true ? `;${joined(";", "=")}` : `;${name}=${joined(",", ",")}`;
    if (list) return input.explode === true ? list.map((one) => `;${name}=${encoded(one)}`).join("") : `;${name}=${list.map(encoded).join(",")}`;
    return `;${name}=${encoded(value)}`;
  }
  if (pairs) return input.explode === true ? joined(",", "=") : joined(",", ",");
  return list ? list.map(encoded).join(",") : encoded(value);
}

/** Name and value pairs of a nested value, the path in brackets. */
function bracketPairs(name, value, isIndexed) {
  const isOpen = (one) => isNested(one) && !(one instanceof Blob);
  if (Array.isArray(value)) return value.flatMap((one, index) => bracketPairs(isIndexed || isOpen(one) ? `${name}[${index}]` : name, one, isIndexed));
  if (isOpen(value)) return ownEntries(value).flatMap(([key, one]) => bracketPairs(`${name}[${key}]`, one, isIndexed));
  return [[name, isExactNumber(value) ? scalarText(value) : value]];
}

/** A query parameter in the styles form, spaceDelimited, pipeDelimited, deepObject and json. */
function queryPairs(input, value) {
  if (input.format === "json") return [[input.name, exactJsonText(value)]];
  if (input.format === "deepObject") return bracketPairs(Array.isArray(value) ? `${input.name}[]` : input.name, value, false).map(([name, one]) => [name, String(one)]);
  const separator = input.format === "spaceDelimited" ? " " : input.format === "pipeDelimited" ? "|" : input.format === "tabDelimited" ? String.fromCharCode(9) : ",";
  const isExploded = input.explode ?? (input.format === undefined || input.format === "form");
  if (Array.isArray(value)) {
    const texts = value.map((one) => (isNested(one) ? exactJsonText(one) : scalarText(one)));
    return isExploded ? texts.map((text) => [input.name, text]) : [[input.name, texts.join(separator)]];
  }
  if (isNested(value)) {
    const pairs = ownEntries(value).map(([name, one]) => [name, isNested(one) ? exactJsonText(one) : scalarText(one)]);
    return isExploded ? pairs : [[input.name, pairs.map(([name, one]) => `${name}${separator}${one}`).join(separator)]];
  }
  return [[input.name, scalarText(value)]];
}

/** Pairs as an object; a name that comes twice holds a list. */
function gathered(pairs) {
  return pairs.reduce((all, [name, value]) => {
    const before = own(all, name);
    return withOwn(all, name, before === undefined ? value : Array.isArray(before) ? [...before, value] : [before, value]);
  }, {});
}

function headerText(value) {
  if (Array.isArray(value)) return value.map(scalarText).join(",");
  return isNested(value) ? ownEntries(value).map(([name, one]) => `${name},${scalarText(one)}`).join(",") : scalarText(value);
}

/**
 * The request of an operation with these drafts and the value of its body. In an edit, `edit` holds the item and the
 * drafts that the form began with: variables that are not required are sent only where they were changed.
 */
function buildCall(operation, drafts, bodyValue, edit) {
  let path = operation.path;
  const query = [];
  const headers = [];
  const cookies = [];
  const variables = [];
  for (const input of operation.inputs ?? []) {
    const value = edit !== undefined && input.place === "variable" ? changedVariable(input, edit, own(drafts, inputKey(input))) : valueOf(input, own(drafts, inputKey(input)));
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
    body = files.length > 0 ? uploadOf(sent, files) : sent;
  } else if (operation.body !== undefined) {
    body = bodyOf(operation.body, bodyValue);
    if (body !== undefined) headers.push(["Content-Type", operation.body.contentType.includes("*") ? "application/json" : operation.body.contentType]);
  }
  return { path, query: gathered(query), headers: Object.fromEntries(headers), body };
}

/** The files in a value, as `[path, file]`. */
function filesIn(value, path) {
  if (value instanceof Blob) return [[path, value]];
  if (Array.isArray(value)) return value.flatMap((one, index) => filesIn(one, `${path}.${index}`));
  return ownEntries(value).flatMap(([name, one]) => filesIn(one, `${path}.${name}`));
}

/** A GraphQL request with files, as the multipart request specification has it. */
function uploadOf(sent, files) {
  const places = files.map(([path], index) => [String(index), [path]]);
  const parts = files.map(([, file], index) => [String(index), file]);
  return withAll({ operations: exactJsonText(withoutFiles(sent)), map: JSON.stringify(Object.fromEntries(places)) }, Object.fromEntries(parts));
}

function withoutFiles(value) {
  if (value instanceof Blob) return null;
  if (Array.isArray(value)) return value.map(withoutFiles);
  if (!isNested(value)) return value;
  return Object.fromEntries(ownEntries(value).map(([name, one]) => [name, withoutFiles(one)]));
}

/** The variable of an edit: what it requires, and what was changed. */
function changedVariable(input, edit, draft) {
  const start = own(edit.starts, inputKey(input));
  const base = own(edit.item, input.name);
  if (input.kind !== "object" || draft === undefined || typeof draft === "string") {
    const isNeeded = input.required === true || own(edit.known, input.name) !== undefined;
    return draft === start && !isNeeded ? undefined : base === undefined ? valueOf(input, draft) : mergedValue(input, base, start, draft);
  }
  const pairs = fieldsOf(input).flatMap((field) => {
    const [before, now] = [own(start, field.name), own(draft, field.name)];
    if (before === now && field.required !== true) return [];
    const sent = own(edit.item, field.name);
    const value = sent === undefined ? valueOf(field, now) : mergedValue(field, sent, before, now);
    return value === undefined ? (before === now ? [] : [[field.name, null]]) : [[field.name, value]];
  });
  return Object.fromEntries(pairs);
}

function bodyOf(form, value) {
  if (value === undefined || form.kind === "json" || form.kind === "text" || form.kind === "file") return value;
  if (form.kind === "multipart") return value;
  return gathered(ownEntries(value).flatMap(([name, one]) => bracketPairs(name, one, form.brackets === true)));
}

/** The headers and query that carry the credentials of an operation: of the first alternative that is complete. */
function credentialParts(operation, held) {
  const has = (index) => PLAN.schemes.at(index).kind === "mutualTls" || (own(held, index)?.secret ?? "") !== "";
  const alternatives = operation.security ?? [];
  const chosen = alternatives.find((all) => all.every(has)) ?? [];
  const headers = [];
  const query = [];
  for (const index of chosen) {
    const scheme = PLAN.schemes.at(index);
    const { secret, account } = own(held, index) ?? {};
    if (scheme.kind === "mutualTls") continue;
    if (scheme.kind === "basic") headers.push(["Authorization", `Basic ${base64(`${account ?? ""}:${secret}`)}`]);
    else if (scheme.kind === "http") headers.push(["Authorization", `${labelOf(scheme.parameter)} ${secret}`]);
    else if (scheme.kind !== "apiKey") headers.push(["Authorization", `Bearer ${secret}`]);
    else if (scheme.place === "query") query.push([scheme.parameter, secret]);
    else if (scheme.place === "cookie") headers.push(["Cookie", `${scheme.parameter}=${secret}`]);
    else headers.push([scheme.parameter, secret]);
  }
  return { headers: Object.fromEntries(headers), query: Object.fromEntries(query) };
}

function base64(text) {
  const bytes = encodeURIComponent(text).replace(/%([0-9A-F]{2})/g, (whole, digits) => String.fromCharCode(parseInt(digits, 16)));
  return btoa(bytes);
}

function needsSignIn(operation, held) {
  const alternatives = operation.security ?? [];
  const has = (index) => PLAN.schemes.at(index).kind === "mutualTls" || (own(held, index)?.secret ?? "") !== "";
  return alternatives.length > 0 && !alternatives.some((all) => all.every(has));
}

const DEADLINE = 60000;

/** Sends a call and answers with a state; it never throws. */
async function performCall(request, operation, call, held, server, controller) {
  const parts = credentialParts(operation, held);
  const since = Date.now();
  const timer = setTimeout(() => controller.abort(), DEADLINE);
  try {
    const answer = await request({
      operation: operation.signature,
      method: operation.method,
      path: call.path,
      query: withAll(call.query, parts.query),
      headers: withAll(call.headers, parts.headers),
      body: call.body,
      text: jsonTextOf(call),
      signal: controller.signal,
      server: operation.server ?? server,
    });
    return withAll(stateOf(operation, answer), { took: Date.now() - since, sent: call });
  } catch (error) {
    const message = controller.signal.aborted ? `There was no answer within ${DEADLINE / 1000} seconds.` : String(error?.message ?? error);
    return { phase: "failed", status: 0, message, data: undefined };
  } finally {
    clearTimeout(timer);
  }
}

/** The JSON text of a body, for a host that sends it: numbers keep all their digits. */
function jsonTextOf(call) {
  const kind = String(own(call.headers, "Content-Type") ?? "");
  return call.body === undefined || !/[/+]json/.test(kind) ? undefined : exactJsonText(call.body);
}

function stateOf(operation, answer) {
  const { status, headers, text } = answer ?? {};
  const data = text === undefined ? answer?.data : (parseJson(text) ?? text);
  const errors = operation.queryText === undefined ? undefined : own(data, "errors");
  const isWhole = !Array.isArray(errors) || (operation.result !== undefined && ![undefined, null].includes(valueAt(data, operation.result)));
  if (answer?.ok === true && isWhole) {
    const result = operation.result === undefined ? data : valueAt(data, operation.result);
    return { phase: "done", status, headers, data, result };
  }
  const reason = Array.isArray(errors) ? errors.map((one) => own(one, "message") ?? textOf(one)).join(" ") : messageIn(data);
  return { phase: "failed", status: status ?? 0, message: reason, data, headers };
}

/** The sentence in an error body, by the names it usually has. */
function messageIn(data) {
  if (typeof data === "string") return data.length > 300 ? "" : data;
  for (const name of ["message", "error_description", "detail", "title", "error", "errors"]) {
    const found = own(data, name);
    if (typeof found === "string" && found !== "") return found;
    const inner = own(Array.isArray(found) ? found.at(0) : found, "message");
    if (typeof inner === "string") return inner;
  }
  return "";
}

/** The address of the next page in a Link header, as the query it adds. */
function nextLink(headers) {
  const entry = ownEntries(headers).find(([name]) => name.toLowerCase() === "link");
  const found = /<([^>]+)>\s*;[^,]*rel="?next"?/.exec(entry ? String(entry.at(1)) : "");
  return found ? found.at(1) : undefined;
}

/** The query of an address, as an object. */
function queryOfAddress(address) {
  const text = String(address).split("#").at(0);
  if (!text.includes("?")) return {};
  const decode = (part) => {
    try {
      return decodeURIComponent(part.replaceAll("+", " "));
    } catch {
      return part;
    }
  };
  const pairs = text.slice(text.indexOf("?") + 1).split("&").filter((pair) => pair !== "");
  return gathered(pairs.map((pair) => [decode(pair.split("=").at(0)), decode(pair.split("=").slice(1).join("="))]));
}

/** Runs a call when it changes, and again when `turn` does. Nothing runs while `call` is undefined. */
function useAnswer(ui, operation, call, turn) {
  const [state, setState] = useState({ phase: "loading" });
  const text = call === undefined ? "" : exactJsonText(call);
  useEffect(() => {
    if (text === "") return undefined;
    const controller = new AbortController();
    let isWanted = true;
    setState({ phase: "loading" });
    ui.perform(operation, parseExactJson(text), controller).then((next) => {
      if (isWanted) setState(next);
    });
    return () => {
      isWanted = false;
      controller.abort();
    };
  }, [text, turn, ui.stamp]);
  return call === undefined ? { phase: "waiting" } : state;
}
