// ---- Controls: one for each kind of input ----

import { useContext } from "react";
import { parseJson } from "./drafts";
import { FormPlace, ReferenceControl, canChoose } from "./reference";
import { labelOf, textOf } from "./values";
import { exactJsonText } from "./vetted";
import type { Data, Draft, Input } from "./types";

/** The type of a control, and which drafts it can show as they are. */
export const CONTROL_TYPES: [string, string, RegExp][] = [
  ["number", "number", /^-?[0-9]+(\.[0-9]+)?$/],
  ["integer", "number", /^-?[0-9]+$/],
  ["date", "date", /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/],
  ["time", "time", /^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?$/],
  ["email", "email", /^/],
  ["secret", "password", /^/],
  ["url", "url", /^/],
];

/** A draft that its usual control cannot show as it is gets a plain text control, so that nothing is lost. */
export function controlType(input: Input, text: string) {
  const found = CONTROL_TYPES.find(([kind]) => kind === input.kind);
  return found === undefined || (text !== "" && !found[2].test(text)) ? "text" : found[1];
}

/** A moment in parts: what a control for date and time shows, and the zone. */
export function momentParts(text: string) {
  const found =
    /^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?)([Zz]|[-+][0-9]{2}:?[0-9]{2})?$/.exec(
      text,
    );
  return found === null ? undefined : { local: `${found.at(1)}T${found.at(2)}`, zone: found.at(3) ?? "" };
}

/** The reader's zone at a moment, such as +02:00. */
export function zoneOf(local: string) {
  const date = new Date(local);
  const minutes = Number.isNaN(date.getTime()) ? 0 : -date.getTimezoneOffset();
  const two = (number: number) => String(Math.trunc(number)).padStart(2, "0");
  return minutes === 0
    ? "Z"
    : `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}

export function MomentControl({
  id,
  text,
  described,
  isWrong,
  needed,
  whenChanged,
}: {
  id: string;
  text: string;
  described: string | undefined;
  isWrong: boolean;
  needed: boolean;
  whenChanged: (next: string) => void;
}) {
  const parts = momentParts(text) ?? { local: "", zone: undefined };
  const zones = [...new Set([parts.zone, zoneOf(parts.local), "Z", ""])].filter((zone) => zone !== undefined);
  const write = (local: string, zone: string | undefined) =>
    whenChanged(local === "" ? "" : `${local}${local.length === 16 ? ":00" : ""}${zone ?? zoneOf(local)}`);
  return (
    <div className="dragoman-row">
      <input
        id={id}
        type="datetime-local"
        step="any"
        className="dragoman-input"
        value={parts.local}
        aria-invalid={isWrong}
        aria-required={needed}
        aria-describedby={described}
        onChange={(event) => write(event.target.value, parts.zone)}
      />
      <select
        className="dragoman-input dragoman-zone"
        aria-label="Time zone"
        value={parts.zone ?? zoneOf(parts.local)}
        onChange={(event) => write(parts.local, event.target.value)}
      >
        {zones.map((zone) => (
          <option key={zone} value={zone}>
            {zone === "" ? "No zone" : zone === "Z" ? "UTC" : zone}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Control({
  id,
  input,
  draft,
  isWrong,
  whenChanged,
}: {
  id: string;
  input: Input;
  draft: Draft;
  isWrong: boolean;
  whenChanged: (next: Data) => void;
}) {
  const described =
    `${input.note ? `dragoman-hint-${id}` : ""}${isWrong ? ` dragoman-problem-${id}` : ""}`.trim() || undefined;
  const needed = input.required === true;
  const text = typeof draft === "string" ? draft : "";
  const place = useContext(FormPlace);
  if (canChoose(input, place))
    return (
      <ReferenceControl
        id={id}
        input={input}
        text={text}
        described={described}
        isWrong={isWrong}
        whenChanged={(next) => whenChanged(next)}
      />
    );
  if (input.kind === "boolean") {
    return (
      <select
        id={id}
        className="dragoman-input"
        value={typeof draft === "boolean" ? String(draft) : ""}
        aria-invalid={isWrong}
        aria-required={needed}
        aria-describedby={described}
        onChange={(event) => whenChanged(event.target.value === "" ? undefined : event.target.value === "true")}
      >
        <option value="">–</option>
        <option value="true">Yes</option>
        <option value="false">No</option>
      </select>
    );
  }
  if (input.kind === "choice") {
    const texts = input.choices!.map((choice) => exactJsonText(choice));
    const unlisted = text === "" || texts.includes(text) ? [] : [text];
    return (
      <select
        id={id}
        className="dragoman-input"
        value={text}
        aria-invalid={isWrong}
        aria-required={needed}
        aria-describedby={described}
        onChange={(event) => whenChanged(event.target.value === "" ? undefined : event.target.value)}
      >
        <option value="">–</option>
        {[...texts, ...unlisted].map((one, index) => (
          <option key={one} value={one}>
            {input.labels?.at(index) ?? choiceLabel(parseJson(one))}
          </option>
        ))}
      </select>
    );
  }
  if (input.kind === "multiline" || input.kind === "json") {
    return (
      <textarea
        id={id}
        className={input.kind === "json" ? "dragoman-input dragoman-code" : "dragoman-input"}
        rows={input.kind === "json" ? 5 : 4}
        value={text}
        placeholder={input.kind === "json" ? "JSON" : input.example}
        spellCheck={input.kind !== "json"}
        dir={input.kind === "json" ? "ltr" : "auto"}
        aria-invalid={isWrong}
        aria-required={needed}
        aria-describedby={described}
        onChange={(event) => whenChanged(event.target.value)}
      />
    );
  }
  if (input.kind === "file") {
    return (
      <input
        id={id}
        type="file"
        className="dragoman-input"
        aria-invalid={isWrong}
        aria-required={needed}
        aria-describedby={described}
        onChange={(event) => whenChanged(event.target.files?.[0])}
      />
    );
  }
  if (input.kind === "datetime" && (text === "" || momentParts(text) !== undefined)) {
    return (
      <MomentControl
        id={id}
        text={text}
        described={described}
        isWrong={isWrong}
        needed={needed}
        whenChanged={(next) => whenChanged(next)}
      />
    );
  }
  const type = controlType(input, text);
  return (
    <input
      id={id}
      type={type}
      className="dragoman-input"
      value={text}
      placeholder={input.example}
      step={type === "number" || type === "time" ? "any" : undefined}
      autoComplete={type === "password" ? "new-password" : "off"}
      dir={type === "text" ? "auto" : undefined}
      aria-invalid={isWrong}
      aria-required={needed}
      aria-describedby={described}
      onChange={(event) => whenChanged(event.target.value)}
    />
  );
}

/** A choice as people read it: `in_progress` → `In progress`. */
export function choiceLabel(value: Data) {
  if (value === "") return "(empty)";
  return typeof value === "string" && /^[a-z]+([_-][a-z]+)+$|^[A-Z]+(_[A-Z]+)+$/.test(value)
    ? labelOf(value.toLowerCase())
    : textOf(value);
}
