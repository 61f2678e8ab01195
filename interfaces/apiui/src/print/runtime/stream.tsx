// ---- Streams: an answer that comes in parts, shown while it comes ----

import { DataView } from "./data";
import { parseJson } from "./drafts";
import { Badge } from "./parts";
import { valueAt } from "./values";
import type { Data } from "./types";

/** The most parts that are shown, the newest first. */
export const SHOWN_PARTS = 200;

/** One event of a stream, or one line of it. */
export interface StreamPart {
  kind: string;
  value: Data;
}

/** The whole parts in a text: server-sent events, or a value a line. */
export function partsOf(text: string): StreamPart[] {
  const whole = text.replaceAll("\r\n", "\n").replaceAll("\r", "\n");
  const isEvents = /^(data|event|id|retry|:)/m.test(whole) && !/^\s*[[{"]/.test(whole);
  if (!isEvents)
    return whole
      .split("\n")
      .slice(0, -1)
      .filter((line) => line.trim() !== "")
      .map((line) => ({ kind: "", value: parseJson(line) ?? line }));
  return whole
    .split("\n\n")
    .slice(0, -1)
    .flatMap((block) => {
      const fieldsNamed = (name: string) =>
        block
          .split("\n")
          .filter((line) => line.startsWith(`${name}:`))
          .map((line) => line.slice(name.length + 1).replace(/^ /, ""));
      const data = fieldsNamed("data").join("\n");
      return data === "" ? [] : [{ kind: fieldsNamed("event").at(-1) ?? "", value: parseJson(data) ?? data }];
    });
}

/** `result`: where a part holds what was asked for; a part without it is shown whole. */
export function StreamView({ text, isOpen, result }: { text: string; isOpen: boolean; result?: string[] }) {
  const parts = partsOf(isOpen ? text : `${text}\n\n`);
  const shown = parts.slice(-SHOWN_PARTS).toReversed();
  const asked = (value: Data) => (result === undefined ? value : (valueAt(value, result) ?? value));
  return (
    <div className="dragoman-result" data-testid="stream">
      <div className="dragoman-row" role="status">
        <Badge text={isOpen ? "Receiving" : "Ended"} tone={isOpen ? "good" : "plain"} />
        <span className="dragoman-hint">{`${parts.length} ${parts.length === 1 ? "part" : "parts"}`}</span>
      </div>
      <ol className="dragoman-parts">
        {shown.map((part, index) => (
          <li key={parts.length - index}>
            {part.kind === "" || result !== undefined ? null : <Badge text={part.kind} />}
            <DataView value={asked(part.value)} depth={1} />
          </li>
        ))}
      </ol>
    </div>
  );
}
