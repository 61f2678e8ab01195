// ---- Vetted definitions: data is read, numbers are kept and requests are sent by these alone ----

import { SERVERS } from "../plan";
import type { Answer, Data, Request } from "./types";

export function isPlainData(value: unknown) {
  if (value === null || typeof value !== "object") return false;
  if (Object.hasOwn(value, "$$typeof") || Object.hasOwn(value, "stateNode")) return false;
  const prototype = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null;
}

export function own(object: Data, key: unknown): Data {
  const name = String(key);
  return isPlainData(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}

export function ownEntries(object: Data): [string, Data][] {
  return isPlainData(object) ? Object.entries(object) : [];
}

export function withOwn<T>(object: T, key: unknown, value: unknown): NonNullable<T>;
export function withOwn(object: Data, key: unknown, value: unknown): Data {
  const name = String(key);
  return isPlainData(object) && !Array.isArray(object) ? { ...object, [name]: value } : { [name]: value };
}

export function withAll<T>(object: T, other: unknown): NonNullable<T>;
export function withAll(object: Data, other: Data): Data {
  return { ...(isPlainData(object) ? object : {}), ...(isPlainData(other) ? other : {}) };
}

export function safeUrl(text: unknown) {
  const address = String(text ?? "").trim();
  if (!/^(https?:\/\/|mailto:|tel:)/i.test(address)) return undefined;
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:", "tel:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

export function isExactNumber(value: unknown): value is { digits: string } {
  return (
    value !== null &&
    typeof value === "object" &&
    Object.getPrototypeOf(value) === null &&
    Object.hasOwn(value, "digits")
  );
}

export function exactNumber(text: unknown): Data {
  const digits = String(text);
  if (!/^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$/.test(digits)) return undefined;
  return String(Number(digits)) === digits
    ? Number(digits)
    : Object.freeze(Object.assign(Object.create(null), { digits }));
}

export function parseExactJson(text: unknown): Data {
  const source = String(text);
  if (!/[0-9.]{16}|\.[0-9]*0(?![0-9])|[0-9][eE]|-0/.test(source)) return JSON.parse(source);
  let isSupported = false;
  JSON.parse("1", (key: string, value: Data, context?: Data) => {
    isSupported = context?.source === "1";
    return value;
  });
  if (isSupported)
    return JSON.parse(source, (key: string, value: Data, context?: Data) =>
      typeof value === "number" ? exactNumber(context.source) : value,
    );
  JSON.parse(source);
  const mark = `number ${Math.random()} `;
  const marked = source.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][-+.0-9eE]*/g, (token) =>
    token.startsWith('"') || typeof exactNumber(token) === "number" ? token : `"${mark}${token}"`,
  );
  return JSON.parse(marked, (key, value) =>
    typeof value === "string" && value.startsWith(mark) ? exactNumber(value.slice(mark.length)) : value,
  );
}

export function exactJsonText(value: unknown, space?: number): string {
  const mark = `number ${String(Math.random()).slice(2)} `;
  const text = JSON.stringify(value, (key, one) => (isExactNumber(one) ? mark + String(one.digits) : one), space);
  return text?.replace(new RegExp(`"${mark}(-?[0-9][-+.0-9eE]*)"`, "g"), "$1");
}

export async function sendRequest({
  method,
  path,
  query,
  headers,
  body,
  signal,
  server,
  whenPart,
}: Parameters<Request>[0]): Promise<Answer> {
  const chosen =
    Number(server) === -1
      ? document.querySelector<HTMLMetaElement>('meta[name="dragoman-server"]')?.content
      : undefined;
  const base = new URL(chosen ?? SERVERS[Number(server) || 0] ?? SERVERS[0], document.baseURI);
  if (base.protocol !== "https:" && base.protocol !== "http:") {
    throw new Error(
      "This page does not know the address of the API. Serve it over HTTP or generate it with a base URL.",
    );
  }
  const root = base.origin + base.pathname.replace(/\/+$/, "");
  const tail = String(path ?? "");
  const url = new URL(tail === "" ? root : root + "/" + tail.replace(/^\/+/, ""));
  if (url.origin !== base.origin || !(url.origin + url.pathname + "/").startsWith(root + "/")) {
    throw new Error("The path leads out of the API.");
  }
  for (const [name, value] of Object.entries(query ?? {})) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null) url.searchParams.append(name, String(one));
    }
  }
  const sent = new Headers();
  for (const [name, value] of Object.entries(headers ?? {})) {
    if (value !== undefined && value !== null) sent.set(name, String(value));
  }
  const verb = String(method ?? "GET").toUpperCase();
  let payload;
  if (body !== undefined && body !== null && verb !== "GET" && verb !== "HEAD") {
    const kind = (sent.get("Content-Type") ?? "").toLowerCase();
    const fields: Data = kind.startsWith("multipart/form-data") ? new FormData() : new URLSearchParams();
    if (kind === "" || /[/+]json/.test(kind)) {
      payload = exactJsonText(body);
      if (kind === "") sent.set("Content-Type", "application/json");
    } else if (kind.startsWith("multipart/form-data") || kind.startsWith("application/x-www-form-urlencoded")) {
      for (const [name, value] of Object.entries(body)) {
        for (const one of Array.isArray(value) ? value : [value]) {
          if (one === undefined || one === null) continue;
          const part = typeof one === "object" && !(one instanceof Blob) ? exactJsonText(one) : one;
          fields.append(name, part instanceof Blob ? part : String(part));
        }
      }
      payload = fields;
      if (fields instanceof FormData) sent.delete("Content-Type");
    } else {
      payload = body instanceof Blob ? body : String(body);
    }
  }
  const response = await fetch(url.href, {
    method: verb,
    headers: sent,
    body: payload,
    signal,
    referrerPolicy: "no-referrer",
  });
  const type = (response.headers.get("Content-Type") ?? "").toLowerCase();
  let data = null;
  if (verb !== "HEAD" && response.status !== 204 && response.status !== 304) {
    const isInParts = /^(text\/event-stream|application\/(x-ndjson|jsonl|json-seq))/.test(type);
    if (response.ok && isInParts && response.body !== null && typeof whenPart === "function") {
      const [reader, decoder] = [response.body.getReader(), new TextDecoder()];
      for (let part = await reader.read(); !part.done; part = await reader.read())
        whenPart(decoder.decode(part.value, { stream: true }));
    } else if (/[/+]json/.test(type)) {
      const text = await response.text();
      try {
        data = text === "" ? null : parseExactJson(text);
      } catch {
        data = text;
      }
    } else if (type === "" || /^text\/|[/+]xml|urlencoded|yaml|javascript/.test(type)) {
      data = await response.text();
    } else {
      data = await response.blob();
    }
  }
  return { ok: response.ok, status: response.status, headers: Object.fromEntries(response.headers), data };
}
