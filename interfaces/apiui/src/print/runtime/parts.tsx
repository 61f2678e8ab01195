// ---- Parts: the small pieces that every screen is made of ----

import type { ReactNode } from "react";
import { PLAN } from "../plan";
import { REFUSED } from "./sending";
import { textOf } from "./values";
import type { CallState, Data, Operation, Ui } from "./types";

export function Button({
  label,
  kind,
  isSmall,
  isBusy,
  isPressed,
  signature,
  whenPressed,
  submits,
}: {
  label: string;
  kind?: string;
  isSmall?: boolean;
  isBusy?: boolean;
  isPressed?: boolean;
  signature?: string;
  whenPressed?: () => void;
  submits?: boolean;
}) {
  const classes = `dragoman-button dragoman-${kind ?? "usual"}${isSmall === true ? " dragoman-small" : ""}`;
  return (
    <button
      type={submits === true ? "submit" : "button"}
      className={classes}
      disabled={isBusy === true}
      aria-pressed={isPressed}
      data-operation={signature}
      onClick={() => whenPressed?.()}
    >
      {label}
    </button>
  );
}

export function Badge({ text, tone }: { text: string; tone?: string }) {
  return <span className={`dragoman-badge dragoman-${tone ?? "plain"}`}>{text}</span>;
}

export const TONES: [string, RegExp][] = [
  [
    "good",
    /^(active|available|success|succeeded|ok|paid|open|enabled|completed?|approved|published|healthy|online|running|done|delivered|yes)$/i,
  ],
  [
    "bad",
    /^(failed|failure|error|cancell?ed|rejected|deleted|disabled|closed|overdue|inactive|offline|blocked|expired|sold)$/i,
  ],
  ["warn", /^(pending|waiting|draft|processing|warning|queued|paused|unknown|placed|in.?progress|scheduled)$/i],
];

/** Flags that say something bad when they are true. */
export const BAD_FLAG =
  /(^|[^a-z])(is_?)?(deleted|removed|disabled|archived|blocked|banned|expired|failed|suspended|locked|revoked|cancell?ed|rejected|deprecated|overdue|inactive|hidden|spam|closed|broken|invalid)/i;

export function toneOf(value: Data) {
  const found = TONES.find(([, pattern]) => pattern.test(textOf(value)));
  return found ? found[0] : "plain";
}

export function Verb({ operation }: { operation: Operation }) {
  const word = operation.queryText === undefined ? operation.method : operation.signature.split(" ").at(0);
  const tone = operation.destroys === true ? "bad" : operation.writes === true ? "warn" : "good";
  return <span className={`dragoman-verb dragoman-${tone}`}>{word}</span>;
}

export function LoadingState({ text }: { text?: string }) {
  return (
    <div className="dragoman-state" role="status" aria-live="polite" data-testid="loading">
      <span className="dragoman-spinner" aria-hidden="true" />
      <span>{text ?? "Loading…"}</span>
    </div>
  );
}

export function EmptyState({ title, text, children }: { title: string; text?: string; children?: ReactNode }) {
  return (
    <div className="dragoman-state" data-testid="empty">
      <strong>{title}</strong>
      {text ? <p>{text}</p> : null}
      {children}
    </div>
  );
}

/** What went wrong and what can be done; a refused sign-in leads to the sign-in panel. */
export function FailureState({
  ui,
  operation,
  state,
  whenRetried,
}: {
  ui: Ui;
  operation: Operation;
  state: CallState;
  whenRetried: () => void;
}) {
  const isRefused = state.status === 401 || state.status === 403;
  if (isRefused) {
    return (
      <div className="dragoman-state" role="alert" data-testid="sign-in">
        <strong>{state.status === 401 ? "Sign in to see this" : "This is not allowed with these credentials"}</strong>
        <p>{state.message || "The API asks for credentials that it knows."}</p>
        <div className="dragoman-actions">
          {PLAN.auth && !ui.isHosted ? (
            <Button label="Sign in" kind="primary" whenPressed={() => ui.askSignIn()} />
          ) : null}
          <Button label="Try again" signature={operation.signature} whenPressed={() => whenRetried()} />
        </div>
      </div>
    );
  }
  const title =
    state.status === REFUSED
      ? "Nothing was sent"
      : state.status === 0
        ? "The API could not be reached"
        : state.status === 404
          ? "Not found"
          : state.status === 412
            ? "Somebody else changed this record meanwhile"
            : `The API answered with an error (${state.status})`;
  const advice =
    state.status === 412
      ? "Nothing was saved. Open the record again to see its present state."
      : state.status === 0
        ? "Check the network, the server that is chosen above, and that the API allows requests from this page."
        : "";
  return (
    <div className="dragoman-state" role="alert" data-testid="failure">
      <strong>{title}</strong>
      <p>{state.message}</p>
      {advice ? <p>{advice}</p> : null}
      <Button label="Try again" signature={operation.signature} whenPressed={() => whenRetried()} />
    </div>
  );
}
