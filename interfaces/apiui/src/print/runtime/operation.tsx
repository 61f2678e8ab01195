// ---- One operation in a list of them ----

import { useEffect, useId, useState } from "react";
import { PLAN } from "../plan";
import { provenFor } from "./guards";
import { Markdown } from "./markdown";
import { OperationForm } from "./operation-form";
import { Badge, Verb } from "./parts";
import { isAllowed } from "./resource-screen";
import { pageOfRoute } from "./routes";
import { withOwn } from "./vetted";
import type { Incoming, Operation, Ui, Values } from "./types";

/** One operation in a list of them: closed, a line; open, its form. */
export function OperationEntry({
  ui,
  number,
  known,
  isProven,
  subject,
  "data-operation": signature,
}: {
  ui: Ui;
  number: number;
  known?: Values;
  /** What is known is proven to be about this operation. */
  isProven?: boolean;
  subject?: string;
  "data-operation"?: string;
}) {
  const page = pageOfRoute(ui.route);
  const [isOpen, setIsOpen] = useState(page.unfolded === number);
  useEffect(() => {
    if (page.unfolded === number) setIsOpen(true);
  }, [page.unfolded]);
  const operation = PLAN.operations.at(number);
  const id = useId();
  if (!isAllowed(number)) return null;
  const resource = PLAN.resources.find((one) => one.operations.includes(number))!;
  return (
    <div className="dragoman-operation">
      <button
        type="button"
        className="dragoman-opener"
        aria-expanded={isOpen}
        aria-controls={id}
        data-operation={signature ?? operation.signature}
        onClick={() => {
          setIsOpen(!isOpen);
          if (page.kind === "resource") ui.replace(withOwn(page, "unfolded", isOpen ? undefined : number));
        }}
      >
        <Verb operation={operation} />
        <span className={operation.deprecated === true ? "dragoman-gone" : ""}>{operation.title}</span>
        <code className="dragoman-code">
          {operation.queryText === undefined ? operation.path : operation.signature}
        </code>
      </button>
      {isOpen ? (
        <div id={id} className="dragoman-padded">
          <OperationDetails operation={operation} />
          <OperationForm
            ui={ui}
            operation={operation}
            known={isProven === true ? known : provenFor(resource, number, known, false)}
            subject={subject}
            label={operation.writes === true ? "Send" : "Load"}
          />
        </div>
      ) : null}
    </div>
  );
}

export function OperationDetails({ operation }: { operation: Operation }) {
  const incoming = operation.incoming ?? [];
  return (
    <>
      {operation.deprecated === true ? <p className="dragoman-problem">This operation is deprecated.</p> : null}
      {operation.note ? <Markdown text={operation.note} /> : null}
      {(operation.answers ?? []).length > 0 ? <AnswerNotes operation={operation} /> : null}
      {incoming.length > 0 ? <IncomingList title="The API calls back" entries={incoming} /> : null}
    </>
  );
}

/** What the specification says about the answers. */
export function AnswerNotes({ operation }: { operation: Operation }) {
  return (
    <details className="dragoman-details">
      <summary>Answers</summary>
      <ul className="dragoman-notes">
        {(operation.answers ?? []).map((answer) => (
          <li key={answer.status}>
            <Badge text={answer.status} tone={answer.status.startsWith("2") ? "good" : "plain"} /> {answer.note}
            {answer.shape === undefined ? null : (
              <pre className="dragoman-raw dragoman-code" dir="ltr" tabIndex={0}>
                {answer.shape}
              </pre>
            )}
            {answer.example === undefined ? null : (
              <>
                <span className="dragoman-hint">Example</span>
                <pre className="dragoman-raw dragoman-code" dir="ltr" tabIndex={0}>
                  {answer.example}
                </pre>
              </>
            )}
          </li>
        ))}
      </ul>
    </details>
  );
}

export function IncomingList({ title, entries }: { title: string; entries: Incoming[] }) {
  return (
    <div>
      <h2 className="dragoman-title">{title}</h2>
      <ul className="dragoman-notes">
        {entries.map((entry, index) => (
          <li key={index}>
            <strong>{entry.name}</strong>{" "}
            <code className="dragoman-code">{`${entry.method} ${entry.address ?? ""}`}</code>
            {entry.note ? <p>{entry.note}</p> : null}
            {(entry.fields ?? []).length > 0 ? (
              <p className="dragoman-hint">{`Fields: ${entry.fields!.join(", ")}`}</p>
            ) : null}
          </li>
        ))}
      </ul>
    </div>
  );
}
