// ---- Sending: credentials, one request, and the state that its answer gives ----

import { useEffect, useState } from "react";
import { PLAN } from "../plan";
import { gathered } from "./calls";
import { parseJson } from "./drafts";
import { refusalOf } from "./guards";
import { labelOf, textOf, valueAt } from "./values";
import { exactJsonText, own, ownEntries, parseExactJson, withAll } from "./vetted";
import type { Call, CallState, Data, Operation, Request, Ui, Values } from "./types";

/** The headers and query that carry the credentials of an operation: of the first alternative that is complete. */
export function credentialParts(operation: Operation, held: Values) {
  const has = (index: number) => PLAN.schemes.at(index).kind === "mutualTls" || (own(held, index)?.secret ?? "") !== "";
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

export function base64(text: string) {
  const bytes = encodeURIComponent(text).replace(/%([0-9A-F]{2})/g, (whole, digits) =>
    String.fromCharCode(parseInt(digits, 16)),
  );
  return btoa(bytes);
}

export function needsSignIn(operation: Operation, held: Values) {
  const alternatives = operation.security ?? [];
  const has = (index: number) => PLAN.schemes.at(index).kind === "mutualTls" || (own(held, index)?.secret ?? "") !== "";
  return alternatives.length > 0 && !alternatives.some((all) => all.every(has));
}

export const DEADLINE = 60000;

/** The status of a call that was not sent because it does not say which rows it is about. */
export const REFUSED = -1;

/** How long a stream may be silent. */
export const STREAM_DEADLINE = 600000;

/** Sends a call and answers with a state; it never throws. */
export async function performCall(
  request: Request,
  operation: Operation,
  call: Call,
  held: Values,
  server: number,
  controller: AbortController,
  whenPart?: (text: string) => void,
): Promise<CallState> {
  const refusal = refusalOf(operation, call);
  if (refusal !== undefined) return { phase: "failed", status: REFUSED, message: refusal, data: undefined };
  const parts = credentialParts(operation, held);
  const since = Date.now();
  const deadline = whenPart === undefined ? DEADLINE : STREAM_DEADLINE;
  let timer = setTimeout(() => controller.abort(), deadline);
  // A stream may take as long as it likes while something comes.
  const whenPartCame = (text: string) => {
    clearTimeout(timer);
    timer = setTimeout(() => controller.abort(), deadline);
    whenPart?.(text);
  };
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
      whenPart: whenPart === undefined ? undefined : (text: string) => whenPartCame(text),
    });
    return withAll(stateOf(operation, answer), { took: Date.now() - since, sent: call });
  } catch (error: Data) {
    const message = controller.signal.aborted
      ? `There was no answer within ${deadline / 1000} seconds.`
      : String(error?.message ?? error);
    return { phase: "failed", status: 0, message, data: undefined };
  } finally {
    clearTimeout(timer);
  }
}

/** The JSON text of a body, for a host that sends it: numbers keep all their digits. */
export function jsonTextOf(call: Call) {
  const kind = String(own(call.headers, "Content-Type") ?? "");
  return call.body === undefined || !/[/+]json/.test(kind) ? undefined : exactJsonText(call.body);
}

export function stateOf(operation: Operation, answer: Data): CallState {
  const { status, headers, text } = answer ?? {};
  const data = text === undefined ? answer?.data : (parseJson(text) ?? text);
  const errors = operation.queryText === undefined ? undefined : own(data, "errors");
  const isWhole =
    !Array.isArray(errors) ||
    (operation.result !== undefined && ![undefined, null].includes(valueAt(data, operation.result)));
  if (answer?.ok === true && isWhole) {
    const result = operation.result === undefined ? data : valueAt(data, operation.result);
    return { phase: "done", status, headers, data, result };
  }
  const reason = Array.isArray(errors)
    ? errors.map((one) => own(one, "message") ?? textOf(one)).join(" ")
    : messageIn(data);
  return { phase: "failed", status: status ?? 0, message: reason, data, headers };
}

/** The sentence in an error body, by the names it usually has. */
export function messageIn(data: Data) {
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
export function nextLink(headers: Values | undefined) {
  const entry = ownEntries(headers).find(([name]) => name.toLowerCase() === "link");
  const found = /<([^>]+)>\s*;[^,]*rel="?next"?/.exec(entry ? String(entry.at(1)) : "");
  return found ? found.at(1) : undefined;
}

/** The query of an address, as an object. */
export function queryOfAddress(address: unknown): Values {
  const text = String(address).split("#")[0];
  if (!text.includes("?")) return {};
  const decode = (part: string) => {
    try {
      return decodeURIComponent(part.replaceAll("+", " "));
    } catch {
      return part;
    }
  };
  const pairs = text
    .slice(text.indexOf("?") + 1)
    .split("&")
    .filter((pair) => pair !== "");
  return gathered(pairs.map((pair) => [decode(pair.split("=")[0]), decode(pair.split("=").slice(1).join("="))]));
}

/** Runs a call when it changes, and again when `turn` does. Nothing runs while `call` is undefined. */
export function useAnswer(ui: Ui, operation: Operation, call: Call | undefined, turn?: number): CallState {
  const [state, setState] = useState<CallState>({ phase: "loading" });
  const [again, setAgain] = useState(0);
  const text = call === undefined ? "" : exactJsonText(call);
  // What failed is loaded again when somebody has signed in; what is shown stays as it is.
  useEffect(() => {
    if (state.phase === "failed") setAgain(again + 1);
  }, [ui.session]);
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
  }, [text, turn, ui.stamp, again]);
  return call === undefined ? { phase: "waiting" } : state;
}
