// The `request` that a generated interface gets: each call becomes a message to the page, which answers with another.
import { base64Of, bytesOf } from "./protocol";
import type { FromFrame, SentBody } from "./protocol";

type Send = (type: FromFrame, payload: Record<string, unknown>, requestId?: string) => void;
// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Data = any;

const waiting = new Map<string, { resolve: (answer: Data) => void; reject: (error: Error) => void; call: Data }>();
let count = 0;

/** Longer than the page waits: the page answers first. */
const DEADLINE = 15_000;

export function makeRequest(send: Send) {
  return async (call: Data): Promise<Data> => {
    const headers = new Map<string, string>();
    for (const [name, value] of Object.entries(call.headers ?? {}))
      if (value !== undefined && value !== null) headers.set(name, String(value));
    const method = String(call.method ?? "GET").toUpperCase();
    const body = method === "GET" || method === "HEAD" ? {} : await bodyOf(call, headers);
    const query = Object.entries(call.query ?? {}).flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value])
        .filter((one) => one !== undefined && one !== null)
        .map((one): [string, string] => [name, String(one)]),
    );
    count += 1;
    const requestId = `request-${count}`;
    return new Promise((resolve, reject) => {
      // An answer in parts may take long; the process limits it, and the interface stops it.
      const inParts = typeof call.whenPart === "function";
      const timer = inParts ? 0 : setTimeout(() => settle(requestId, { error: "The page did not answer." }), DEADLINE);
      const end = () => {
        clearTimeout(timer);
        waiting.delete(requestId);
      };
      waiting.set(requestId, {
        call,
        resolve: (answer) => (end(), resolve(answer)),
        reject: (error) => (end(), reject(error)),
      });
      call.signal?.addEventListener("abort", () => {
        if (!waiting.has(requestId)) return;
        send("UI_EVENT", { name: "stop", requestId });
        waiting.get(requestId)?.reject(new Error("The request was stopped."));
      });
      const path = String(call.path ?? "");
      const operation = String(call.operation ?? "");
      const payload = { operation, method, path, query, headers: [...headers], server: Number(call.server) || 0, inParts, ...body };
      send("NETWORK_REQUEST", payload, requestId);
    });
  };
}

/** The answer of the page to a request. */
export function settle(requestId: string, payload: Data) {
  const one = waiting.get(requestId);
  if (one === undefined) return;
  if (typeof payload.part === "string") return one.call.whenPart?.(payload.part);
  if (typeof payload.error === "string") return one.reject(new Error(payload.error));
  const headers = Object.fromEntries(Array.isArray(payload.headers) ? payload.headers : []);
  const type = String(headers["content-type"] ?? "").toLowerCase();
  const status = Number(payload.status);
  const answer: Data = { ok: status >= 200 && status < 300, status, headers };
  const isParts = /^(text\/event-stream|application\/(x-ndjson|jsonl|json-seq))/.test(type);
  if (typeof payload.base64 === "string") answer.data = new Blob([bytesOf(payload.base64)], { type });
  else if (isParts && typeof one.call.whenPart === "function") one.call.whenPart(String(payload.text ?? ""));
  else if (/[/+]json/.test(type) && payload.text !== "") answer.text = payload.text;
  else answer.data = payload.text === "" ? null : payload.text;
  one.resolve(answer);
}

/** A body as the content type asks for it, as generated pages send it. */
async function bodyOf(call: Data, headers: Map<string, string>): Promise<SentBody> {
  if (call.body === undefined || call.body === null) return {};
  const [name = "Content-Type", kind = ""] = [...headers].find(([one]) => one.toLowerCase() === "content-type") ?? [];
  const lower = kind.toLowerCase();
  if (lower === "" || /[/+]json/.test(lower)) {
    if (lower === "") headers.set(name, "application/json");
    return { text: call.text ?? JSON.stringify(call.body) };
  }
  if (lower.startsWith("multipart/form-data") || lower.startsWith("application/x-www-form-urlencoded")) {
    const fields = lower.startsWith("multipart") ? new FormData() : new URLSearchParams();
    for (const [field, value] of Object.entries(call.body))
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one === undefined || one === null) continue;
        if (one instanceof Blob && fields instanceof FormData) fields.append(field, one);
        else fields.append(field, typeof one === "object" ? JSON.stringify(one) : String(one));
      }
    const encoded = new Response(fields);
    headers.set(name, encoded.headers.get("Content-Type") ?? kind);
    return { base64: base64Of(new Uint8Array(await encoded.arrayBuffer())) };
  }
  if (call.body instanceof Blob) return { base64: base64Of(new Uint8Array(await call.body.arrayBuffer())) };
  return { text: String(call.body) };
}
