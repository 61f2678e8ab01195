// ---- Results: what an operation answered ----

import { useState } from "react";
import { DataView } from "./data";
import { FileView, SaveButton, isFile } from "./files";
import { Badge, Button } from "./parts";
import { TreeView } from "./tree";
import { isNested, jsonOf } from "./values";
import { ownEntries } from "./vetted";
import type { CallState, Ui } from "./types";

export function ResultView({ ui, state }: { ui: Ui; state: CallState }) {
  const [view, setView] = useState("Formatted");
  const value = state.result;
  const isNothing = value === null || value === undefined || value === "";
  const isData = isNested(value) && !(value instanceof Blob);
  return (
    <div className="dragoman-result" role="status" data-testid="result">
      <div className="dragoman-row">
        <Badge text={`Done (${state.status})`} tone="good" />
        <span className="dragoman-hint">{`${state.took} ms`}</span>
        <span className="dragoman-grow" />
        {isData
          ? ["Formatted", "Tree", "Raw"].map((name) => (
              <Button
                key={name}
                label={name}
                kind={name === view ? "usual" : "quiet"}
                isSmall
                isPressed={name === view}
                whenPressed={() => setView(name)}
              />
            ))
          : null}
        {isData ? <SaveButton ui={ui} state={state} /> : null}
      </div>
      {isNothing ? (
        <span className="dragoman-hint">The API sent no content.</span>
      ) : isFile(state) ? (
        <FileView ui={ui} state={state} />
      ) : view === "Tree" && isData ? (
        <TreeView value={value} />
      ) : view === "Raw" && isData ? (
        <pre className="dragoman-raw dragoman-code" dir="ltr" tabIndex={0}>
          {jsonOf(value)}
        </pre>
      ) : (
        <DataView value={value} depth={0} />
      )}
      <details className="dragoman-details">
        <summary>Headers of the answer</summary>
        <pre className="dragoman-raw dragoman-code" dir="ltr" tabIndex={0}>
          {ownEntries(state.headers)
            .map(([name, text]) => `${name}: ${text}`)
            .join("\n")}
        </pre>
      </details>
    </div>
  );
}
