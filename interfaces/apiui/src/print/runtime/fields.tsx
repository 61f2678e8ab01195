// ---- Forms: one control per kind of input, with its label, hint and problem ----

import { useId } from "react";
import { Control } from "./controls";
import { EMPTY_TEXT, TEXT_KINDS } from "./drafts";
import { GroupField } from "./groups";
import { Badge } from "./parts";
import { labelOf } from "./values";
import type { Data, Draft, Input, Problem } from "./types";

/**
 * A labelled control and everything that belongs to it. A reference is decided when its control is left: the place of its
 * states is reserved, so that nothing moves under the pointer then.
 */
export function Field({
  input,
  draft,
  place,
  problems,
  whenChanged,
  caption,
}: {
  input: Input;
  draft: Draft;
  place: string;
  problems: Problem[];
  whenChanged: (next: Draft) => void;
  caption?: string;
}) {
  const id = useId();
  const problem = problems.find((one) => one.place === place);
  const label = caption ?? (input.name === "" ? "Value" : labelOf(input.name));
  if (["object", "list", "map", "variant"].includes(input.kind)) {
    return (
      <GroupField
        input={input}
        draft={draft}
        place={place}
        problems={problems}
        whenChanged={(next) => whenChanged(next)}
        label={label}
      />
    );
  }
  return (
    <div className="dragoman-field">
      <label htmlFor={id}>
        {label}
        {input.required === true ? <span className="dragoman-need"> *</span> : null}
      </label>
      <Control
        id={id}
        input={input}
        draft={draft}
        isWrong={problem !== undefined}
        whenChanged={(next) => whenChanged(next)}
      />
      {input.reference === undefined || input.bare === true ? (
        <DraftState input={input} draft={draft} label={label} whenChanged={(next) => whenChanged(next)} />
      ) : (
        <div className="dragoman-reserved">
          <DraftState input={input} draft={draft} label={label} whenChanged={(next) => whenChanged(next)} />
        </div>
      )}
      {input.note ? (
        <span className="dragoman-hint" id={`dragoman-hint-${id}`}>
          {input.note}
        </span>
      ) : null}
      {problem ? (
        <span className="dragoman-problem" role="alert" id={`dragoman-problem-${id}`}>
          {problem.message}
        </span>
      ) : null}
    </div>
  );
}

/** Null, absent and empty are three things: which one a control without text stands for, and how to choose another. */
export function DraftState({
  input,
  draft,
  label,
  whenChanged,
}: {
  input: Input;
  draft: Draft;
  label: string;
  whenChanged: (next: Data) => void;
}) {
  if (input.bare === true) return null;
  const isText = TEXT_KINDS.includes(input.kind);
  const isBlank = draft === "" || draft === EMPTY_TEXT;
  const state = draft === null ? "null" : isBlank && isText ? "Empty text" : undefined;
  const canBeNull = input.nullable === true && draft !== null;
  const canBeAbsent = input.required !== true && draft !== undefined;
  if (state === undefined && (draft === undefined || !(canBeNull || canBeAbsent))) return null;
  return (
    <span className="dragoman-states">
      {state === undefined ? null : <Badge text={state} />}
      {canBeNull ? <StateButton text="Set to null" label={label} whenPressed={() => whenChanged(null)} /> : null}
      {canBeAbsent ? <StateButton text="Leave out" label={label} whenPressed={() => whenChanged(undefined)} /> : null}
      {draft === null && isText ? (
        <StateButton text="Set to empty text" label={label} whenPressed={() => whenChanged(EMPTY_TEXT)} />
      ) : null}
    </span>
  );
}

export function StateButton({ text, label, whenPressed }: { text: string; label: string; whenPressed: () => void }) {
  return (
    <button
      type="button"
      className="dragoman-textbutton"
      aria-label={`${text}: ${label}`}
      onClick={() => whenPressed()}
    >
      {text}
    </button>
  );
}
