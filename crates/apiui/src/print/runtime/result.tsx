// ---- Results: what an operation answered ----

import { useState } from "react";
import { SERVERS } from "../plan";
import { encoded } from "./calls";
import { DataView } from "./data";
import { Badge, Button } from "./parts";
import { jsonOf } from "./values";
import { exactJsonText, ownEntries } from "./vetted";
import type { Call, CallState, Operation, Ui } from "./types";

/** A command that makes the same request; credentials are left for the reader to fill in. */
export function curlOf(ui: Ui, operation: Operation, sent: Call) {
  const quoted = (text: string) => `'${String(text).replaceAll("'", "'\\''")}'`;
  const base = SERVERS.at(Math.max(0, operation.server ?? ui.server)) ?? "";
  const query = ownEntries(sent.query)
    .flatMap(([name, value]) =>
      (Array.isArray(value) ? value : [value]).map((one) => `${encodeURIComponent(name)}=${encoded(one)}`),
    )
    .join("&");
  const lines = [
    `curl -X ${operation.method} ${quoted(`${base}${sent.path ?? ""}${query === "" ? "" : `?${query}`}`)}`,
  ];
  ownEntries(sent.headers).forEach(([name, value]) => lines.push(`-H ${quoted(`${name}: ${value}`)}`));
  if ((operation.security ?? []).some((all) => all.length > 0)) lines.push("-H 'Authorization: …'");
  if (sent.body !== undefined) lines.push(`-d ${quoted(exactJsonText(sent.body))}`);
  return lines.join(" \\\n  ");
}

export function ResultView({ ui, operation, state }: { ui: Ui; operation: Operation; state: CallState }) {
  const [isRaw, setIsRaw] = useState(false);
  const value = state.result;
  const isNothing = value === null || value === undefined || value === "";
  return (
    <div className="dragoman-result" role="status" data-testid="result">
      <div className="dragoman-row">
        <Badge text={`Done (${state.status})`} tone="good" />
        <span className="dragoman-hint">{`${state.took} ms`}</span>
        <span className="dragoman-grow" />
        {isNothing ? null : (
          <Button label={isRaw ? "Formatted" : "Raw"} kind="quiet" isSmall whenPressed={() => setIsRaw(!isRaw)} />
        )}
      </div>
      {isNothing ? (
        <span className="dragoman-hint">The API sent no content.</span>
      ) : isRaw ? (
        <pre className="dragoman-raw dragoman-code">{jsonOf(value)}</pre>
      ) : (
        <DataView value={value} depth={0} />
      )}
      <details className="dragoman-details">
        <summary>Headers of the answer</summary>
        <pre className="dragoman-raw dragoman-code">
          {ownEntries(state.headers)
            .map(([name, text]) => `${name}: ${text}`)
            .join("\n")}
        </pre>
      </details>
      <details className="dragoman-details">
        <summary>As a command</summary>
        <pre className="dragoman-raw dragoman-code">{curlOf(ui, operation, state.sent!)}</pre>
      </details>
    </div>
  );
}
