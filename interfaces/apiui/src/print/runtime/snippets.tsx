// ---- Snippets: a request as a command and as code ----

import { useState } from "react";
import { PLAN, SERVERS } from "../plan";
import { encoded } from "./calls";
import { Button } from "./parts";
import { isNested, scalarText } from "./values";
import { exactJsonText, ownEntries, withAll } from "./vetted";
import type { Call, Data, Operation, Ui, Values } from "./types";

/** Headers and query with a mark where the reader's credentials go. */
export function credentialMarks(operation: Operation) {
  const schemes = (operation.security ?? []).find((all) => all.length > 0) ?? [];
  const headers: [string, string][] = [];
  const query: [string, string][] = [];
  for (const scheme of schemes.map((index) => PLAN.schemes.at(index))) {
    if (scheme.kind === "basic") headers.push(["Authorization", "Basic …"]);
    else if (scheme.kind !== "apiKey" && scheme.kind !== "mutualTls") headers.push(["Authorization", "Bearer …"]);
    else if (scheme.place === "query") query.push([scheme.parameter ?? "", "…"]);
    else if (scheme.place === "header") headers.push([scheme.parameter ?? "", "…"]);
  }
  return { headers: Object.fromEntries(headers), query: Object.fromEntries(query) };
}

export function addressOf(ui: Ui, operation: Operation, call: Call, extra: Values) {
  const base = SERVERS.at(Math.max(0, operation.server ?? ui.server)) ?? "";
  const query = ownEntries(withAll(call.query, extra))
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one) => `${encodeURIComponent(name)}=${encoded(one)}`),
    )
    .join("&");
  return `${base}${call.path ?? ""}${query === "" ? "" : `?${query}`}`;
}

/** The fields of a form body, one after the other. */
export function formPairs(body: Data): [string, Data][] {
  return ownEntries(body).flatMap(([name, value]): [string, Data][] =>
    (Array.isArray(value) ? value : [value]).map((one): [string, Data] => [name, one]),
  );
}

export function contentKind(call: Call) {
  const [, type] = ownEntries(call.headers).find(([name]) => name.toLowerCase() === "content-type") ?? [];
  const text = String(type ?? "");
  return text.startsWith("multipart/")
    ? "parts"
    : text.includes("urlencoded")
      ? "form"
      : text.includes("json") || text === ""
        ? "json"
        : "plain";
}

/** A command that makes the same request; credentials are left for the reader to fill in. */
export function curlOf(ui: Ui, operation: Operation, call: Call) {
  const quoted = (text: Data) => `'${String(text).replaceAll("'", "'\\''")}'`;
  const marks = credentialMarks(operation);
  const kind = contentKind(call);
  const textOfPart = (one: Data) => (isNested(one) ? exactJsonText(one) : scalarText(one));
  const lines = [`curl -X ${operation.method} ${quoted(addressOf(ui, operation, call, marks.query))}`];
  ownEntries(withAll(call.headers, marks.headers))
    .filter(([name]) => kind !== "parts" || name.toLowerCase() !== "content-type")
    .forEach(([name, value]) => lines.push(`-H ${quoted(`${name}: ${value}`)}`));
  if (call.body === undefined) return lines.join(" \\\n  ");
  if (call.body instanceof Blob) lines.push("--data-binary @file");
  else if (kind === "parts")
    formPairs(call.body).forEach(([name, one]) =>
      lines.push(`-F ${quoted(one instanceof Blob ? `${name}=@file` : `${name}=${textOfPart(one)}`)}`),
    );
  else if (kind === "form")
    formPairs(call.body).forEach(([name, one]) =>
      lines.push(`--data-urlencode ${quoted(`${name}=${textOfPart(one)}`)}`),
    );
  else lines.push(`--data-binary ${quoted(kind === "json" ? exactJsonText(call.body) : textOfPart(call.body))}`);
  return lines.join(" \\\n  ");
}

/** The same request in JavaScript. */
export function fetchOf(ui: Ui, operation: Operation, call: Call) {
  const marks = credentialMarks(operation);
  const kind = contentKind(call);
  const headers = ownEntries(withAll(call.headers, marks.headers)).filter(
    ([name]) => kind !== "parts" || name.toLowerCase() !== "content-type",
  );
  const setup: string[] = [];
  let body = "";
  if (call.body instanceof Blob) body = "file";
  else if (call.body !== undefined && (kind === "parts" || kind === "form")) {
    setup.push(`const body = new ${kind === "parts" ? "FormData" : "URLSearchParams"}();`);
    formPairs(call.body).forEach(([name, one]) =>
      setup.push(
        `body.append(${JSON.stringify(name)}, ${one instanceof Blob ? "file" : JSON.stringify(isNested(one) ? exactJsonText(one) : scalarText(one))});`,
      ),
    );
    body = "body";
  } else if (call.body !== undefined)
    body = JSON.stringify(kind === "json" ? exactJsonText(call.body) : String(call.body));
  return [
    ...setup,
    `const response = await fetch(${JSON.stringify(addressOf(ui, operation, call, marks.query))}, {`,
    `  method: ${JSON.stringify(operation.method)},`,
    ...(headers.length === 0 ? [] : [`  headers: ${JSON.stringify(Object.fromEntries(headers))},`]),
    ...(body === "" ? [] : [`  body${body === "body" ? "" : `: ${body}`},`]),
    "});",
  ].join("\n");
}

/** The request of a form as it is filled in now. */
export function Snippets({ ui, operation, makeCall }: { ui: Ui; operation: Operation; makeCall: () => Call }) {
  const [isOpen, setIsOpen] = useState(false);
  const [isCode, setIsCode] = useState(false);
  const text = !isOpen ? "" : isCode ? fetchOf(ui, operation, makeCall()) : curlOf(ui, operation, makeCall());
  const { copyText } = ui.tools;
  return (
    <details className="dragoman-details" onToggle={(event) => setIsOpen(event.currentTarget.open)}>
      <summary>As a command or code</summary>
      {isOpen ? (
        <>
          <div className="dragoman-row">
            <Button
              label={isCode ? "Show curl" : "Show fetch"}
              kind="quiet"
              isSmall
              whenPressed={() => setIsCode(!isCode)}
            />
            {copyText === undefined ? null : (
              <Button
                label="Copy"
                kind="quiet"
                isSmall
                whenPressed={() => {
                  copyText(text);
                  ui.tell("Copied.");
                }}
              />
            )}
          </div>
          <pre className="dragoman-raw dragoman-code" dir="ltr" tabIndex={0} data-testid="snippet">
            {text}
          </pre>
        </>
      ) : null}
    </details>
  );
}
