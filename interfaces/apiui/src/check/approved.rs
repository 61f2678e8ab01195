//! The vetted definitions that a module may contain and the checker lets do what other code may not.
//!
//! Owns their exact text. The printer writes these very constants into the modules it makes; the checker compares
//! by normalized syntax tree, so white space and comments may differ and nothing else may. It must not know the
//! plan, the specification or the printer.
//!
//! Invariant: whatever arguments a definition is given, it grants no more than its first line says, because every
//! argument is turned into a plain value exactly once before it is looked at. The names they rely on (`Object`,
//! `URL`, …) cannot be bound in a module, so they mean what the browser means by them.
//!
//! # What a module must look like (for who writes the printer, or a prompt)
//! - The first statement is `import { useState, … } from "react";` (or `import React, { … }`), nothing else is imported.
//! - On the top level only imports, `const`/`let` and function declarations and one `export default` of a component.
//! - `const SERVERS = ["https://…", …];` beside [`SEND_REQUEST`]: literal texts, each `""` (the page's own origin), a
//!   path (`/v1`) or an `http(s)` address; the `server` of a call is an index into it.
//! - Data is read with `.name` when the name is harmless and with `own(object, "name")` when it is not literal or is
//!   also the name of something in a browser or in JavaScript (`location`, `parent`, `constructor`, …). `own` is
//!   always right for names that come from a specification. `list[0]`, `list[i - 1]` and `.at(i)` need no `own`.
//! - Names from a specification are never written as object keys (`{ [name]: … }`, `{ constructor: … }`), only as
//!   text: `["constructor", …]`. A keyed copy is made by `withOwn(form, name, value)`.
//! - An object literal has at most one spread, and none if it sets `type`, `props` or `ref`: use `withAll`/`withOwn`.
//! - Elements are written literally or are components of the module, never spread into, and never `style={expression}`
//!   unless that is an object literal or a constant that holds object literals.
//! - `<a href={safeUrl(text)} target="_blank" rel="noopener noreferrer">`, or a literal `href="#name"`. No `img`.
//! - A handler on an element is an inline function or a function of the module (not a prop: write
//!   `onClick={() => onClose()}`), and its event is read on the spot (`event.target.value`), never handed on.
//! - `<form onSubmit={(event) => { event.preventDefault(); … }}>` always; no `action`.
//! - `ref={name}` where `name` is `useRef(null)`, used only as `name.current.focus()` or `name.current?.focus()`.
//! - `id`, `htmlFor` and the like: a literal, a template that begins with a literal prefix that holds a `-`
//!   (`` `field-${name}` ``), or what `useId()` gave; also as a property that every use of the component gives so.
//! - One `<style>{CSS}</style>` may hold a constant text without `url(`, `@import`, `\` or `<`; each selector begins with a
//!   class that starts with `.dragoman`, without `~` and `+`; custom properties are set there and used with `var(--name)`.
//! - `data-` attributes: `data-operation`, `data-testid` and `data-ui-…`.
//! - No classes, generators, getters, `this`, `var`, `delete`, labels, tagged templates, computed keys, `window`,
//!   `document`, `console`, `confirm`, `Symbol`, `Object.assign/values/entries`.

/// The name of the constant that lists the addresses that [`SEND_REQUEST`] may call.
pub const SERVERS: &str = "SERVERS";

/// One vetted definition: the name that is reserved for it, its text, and the other vetted names it calls.
#[derive(Debug, Clone, Copy)]
pub struct Approved {
    pub name: &'static str,
    pub source: &'static str,
    pub needs: &'static [&'static str],
}

/// All of them, in the order in which a module best prints them.
pub const APPROVED: &[Approved] = &[
    Approved { name: "isPlainData", source: IS_PLAIN, needs: &[] },
    Approved { name: "own", source: OWN, needs: &["isPlainData"] },
    Approved { name: "ownEntries", source: OWN_ENTRIES, needs: &["isPlainData"] },
    Approved { name: "withOwn", source: WITH_OWN, needs: &["isPlainData"] },
    Approved { name: "withAll", source: WITH_ALL, needs: &["isPlainData"] },
    Approved { name: "safeUrl", source: SAFE_URL, needs: &[] },
    Approved { name: "isExactNumber", source: IS_EXACT_NUMBER, needs: &[] },
    Approved { name: "exactNumber", source: EXACT_NUMBER, needs: &[] },
    Approved { name: "parseExactJson", source: PARSE_EXACT_JSON, needs: &["exactNumber"] },
    Approved { name: "exactJsonText", source: EXACT_JSON_TEXT, needs: &["isExactNumber"] },
    Approved {
        name: "sendRequest",
        source: SEND_REQUEST,
        needs: &[SERVERS, "parseExactJson", "exactJsonText"],
    },
];

/// Tells data (what JSON can say) from everything else: events, elements, nodes and functions are not plain, nor are
/// copies of elements (`$$typeof`) and of what React keeps behind them (`stateNode`).
/// A prototype whose own prototype is null is `Object.prototype` of this or another frame.
pub const IS_PLAIN: &str = r#"function isPlainData(value) {
  if (value === null || typeof value !== "object") return false;
  if (Object.hasOwn(value, "$$typeof") || Object.hasOwn(value, "stateNode")) return false;
  const prototype = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null;
}
"#;

/// Reads one own property of plain data; `undefined` for everything else. Needs [`IS_PLAIN`].
pub const OWN: &str = r#"function own(object, key) {
  const name = String(key);
  return isPlainData(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}
"#;

/// The `[name, value]` pairs of plain data; none for everything else. Needs [`IS_PLAIN`].
pub const OWN_ENTRIES: &str = r#"function ownEntries(object) {
  return isPlainData(object) ? Object.entries(object) : [];
}
"#;

/// A copy of plain data with one property set (a new object if there was no plain object). Needs [`IS_PLAIN`].
pub const WITH_OWN: &str = r#"function withOwn(object, key, value) {
  const name = String(key);
  return isPlainData(object) && !Array.isArray(object) ? { ...object, [name]: value } : { [name]: value };
}
"#;

/// A copy of the first with the properties of the second laid over it, both plain data. Needs [`IS_PLAIN`].
pub const WITH_ALL: &str = r#"function withAll(object, other) {
  return { ...(isPlainData(object) ? object : {}), ...(isPlainData(other) ? other : {}) };
}
"#;

/// The address if it is an absolute `http`, `https`, `mailto` or `tel` one; `undefined` otherwise.
pub const SAFE_URL: &str = r#"function safeUrl(text) {
  const address = String(text ?? "").trim();
  if (!/^(https?:\/\/|mailto:|tel:)/i.test(address)) return undefined;
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:", "tel:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}
"#;

/// Whether a value is a number that JavaScript cannot hold as it was written; `exactNumber` makes them.
pub const IS_EXACT_NUMBER: &str = r#"function isExactNumber(value) {
  return value !== null && typeof value === "object" && Object.getPrototypeOf(value) === null && Object.hasOwn(value, "digits");
}
"#;

/// A JSON number by its text: a plain number where that is written the same way, otherwise `{ digits }`, which keeps
/// the text; `undefined` for a text that is not a JSON number.
pub const EXACT_NUMBER: &str = r#"function exactNumber(text) {
  const digits = String(text);
  if (!/^-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?$/.test(digits)) return undefined;
  return String(Number(digits)) === digits ? Number(digits) : Object.freeze(Object.assign(Object.create(null), { digits }));
}
"#;

/// Reads JSON without losing digits. A browser that does not hand the source text of a number to a reviver gets the
/// numbers marked as texts first. Needs [`EXACT_NUMBER`].
pub const PARSE_EXACT_JSON: &str = r#"function parseExactJson(text) {
  const source = String(text);
  if (!/[0-9.]{16}|\.[0-9]*0(?![0-9])|[0-9][eE]|-0/.test(source)) return JSON.parse(source);
  let isSupported = false;
  JSON.parse("1", (key, value, context) => {
    isSupported = context?.source === "1";
    return value;
  });
  if (isSupported) return JSON.parse(source, (key, value, context) => (typeof value === "number" ? exactNumber(context.source) : value));
  JSON.parse(source);
  const mark = `number ${Math.random()} `;
  const marked = source.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?[0-9][-+.0-9eE]*/g, (token) => (token.startsWith('"') || typeof exactNumber(token) === "number" ? token : `"${mark}${token}"`));
  return JSON.parse(marked, (key, value) => (typeof value === "string" && value.startsWith(mark) ? exactNumber(value.slice(mark.length)) : value));
}
"#;

/// JSON text in which exact numbers have their own digits. Needs [`IS_EXACT_NUMBER`].
pub const EXACT_JSON_TEXT: &str = r#"function exactJsonText(value, space) {
  const mark = `number ${String(Math.random()).slice(2)} `;
  const text = JSON.stringify(value, (key, one) => (isExactNumber(one) ? mark + String(one.digits) : one), space);
  return text?.replace(new RegExp(`"${mark}(-?[0-9][-+.0-9eE]*)"`, "g"), "$1");
}
"#;

/// Calls an operation below one of the addresses of `SERVERS`, or below the address that the reader chose and the
/// page's own script wrote into its head (`server` is -1), nowhere else, and answers
/// `{ ok, status, headers, data }`. The shape of the body follows the `Content-Type` header that the call gives:
/// none or JSON → JSON text with exact numbers; `application/x-www-form-urlencoded` and `multipart/form-data` → the fields of an object
/// (files stay files, lists repeat the field); anything else → a file or text as it is. `data` is parsed JSON,
/// text, or a Blob. Events and lines of JSON go to `whenPart` as texts while they come, where it is given. A network failure
/// rejects.
pub const SEND_REQUEST: &str = r#"async function sendRequest({ method, path, query, headers, body, signal, server, whenPart }) {
  const chosen = Number(server) === -1 ? document.querySelector('meta[name="dragoman-server"]')?.content : undefined;
  const base = new URL(chosen ?? SERVERS[Number(server) || 0] ?? SERVERS[0], document.baseURI);
  if (base.protocol !== "https:" && base.protocol !== "http:") {
    throw new Error("This page does not know the address of the API. Serve it over HTTP or generate it with a base URL.");
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
    const fields = kind.startsWith("multipart/form-data") ? new FormData() : new URLSearchParams();
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
  const response = await fetch(url.href, { method: verb, headers: sent, body: payload, signal, referrerPolicy: "no-referrer" });
  const type = (response.headers.get("Content-Type") ?? "").toLowerCase();
  let data = null;
  if (verb !== "HEAD" && response.status !== 204 && response.status !== 304) {
    const isInParts = /^(text\/event-stream|application\/(x-ndjson|jsonl|json-seq))/.test(type);
    if (response.ok && isInParts && response.body !== null && typeof whenPart === "function") {
      const [reader, decoder] = [response.body.getReader(), new TextDecoder()];
      for (let part = await reader.read(); !part.done; part = await reader.read()) whenPart(decoder.decode(part.value, { stream: true }));
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
"#;
