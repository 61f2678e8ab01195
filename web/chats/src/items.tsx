// One entry of a chat: a message, a tool call with its difference, a remark.
import { useMemo, useState } from "preact/hooks";
import { Icon } from "../../common/icons";
import type { IconName } from "../../common/icons";
import { Badge, Button, Dialog, Menu } from "../../common/parts";
import type { Tone } from "../../common/parts";
import { fork, rollBack } from "./actions";
import { mayDrive } from "./store";
import { AskCard } from "./asks";
import { Away, Markdown } from "./markdown";
import type { Ask, CallItem, Details, Entry, Item, Remark, TextItem } from "./types";
import { durationText, timeText } from "./words";

interface EntryProps {
  entry: Entry;
  chat: string;
  isBusy: boolean;
  ask: Ask | undefined;
}

/** Drawn again only when it changed: a long chat stays quick while it grows at its end. */
export function EntryView({ entry, chat, isBusy, ask }: EntryProps) {
  return useMemo(() => <EntryBody entry={entry} chat={chat} isBusy={isBusy} ask={ask} />, [entry, chat, isBusy, ask]);
}

function EntryBody({ entry, chat, isBusy, ask }: EntryProps) {
  if (!("item" in entry)) return <RemarkView remark={entry} />;
  switch (entry.type) {
    case "user":
    case "command":
      return <UserMessage item={entry} chat={chat} isBusy={isBusy} />;
    case "agent":
      return (
        <li class="entry from-agent">
          <EntryHead who="Dragoman" item={entry}>
            {mayDrive() ? <Menu label={`More of the answer of ${timeText(entry.at)}`} icon="more" items={[{ label: "Fork up to here", icon: "plus", choose: () => void fork(chat, entry.item) }]} /> : null}
          </EntryHead>
          <Markdown text={entry.text} />
          {entry.isCut === true ? <p class="note">This answer was cut off.</p> : null}
          <Question chat={chat} ask={ask} />
        </li>
      );
    case "reasoning":
      return entry.text === "" ? null : (
        <li class="entry">
          <details class="quiet-box">
            <summary>
              <Icon name="spark" /> Reasoning{entry.millis === undefined || entry.millis === 0 ? "" : ` · ${durationText(entry.millis)}`}
            </summary>
            <Markdown text={entry.text} />
          </details>
        </li>
      );
    case "call":
      return <Call item={entry} chat={chat} ask={ask} />;
    case "compaction":
      return (
        <li class="entry">
          <details class="quiet-box">
            <summary>
              <Icon name="text" /> Everything above was summarized for the model
            </summary>
            <Markdown text={entry.text} />
          </details>
        </li>
      );
    case "system":
      return (
        <li class="entry system">
          <Markdown text={entry.text} />
        </li>
      );
    case "flag":
      return (
        <li class="entry remark">
          <Icon name="check" /> <span>Bookmark: {entry.text}</span>
        </li>
      );
    case "citation":
      return (
        <li class="entry remark">
          <Icon name="link" /> {/^https?:\/\//.test(entry.url) ? <Away address={entry.url}>{entry.title || entry.url}</Away> : <span>{entry.title}</span>}
        </li>
      );
    case "hook":
      return (
        <li class="entry">
          <details class="quiet-box">
            <summary>
              <Icon name="plug" /> Hook {entry.name}
              {entry.status === null ? " runs" : entry.status === 0 ? "" : ` ended with ${entry.status}`}
            </summary>
            <Pre label={`Output of the hook ${entry.name}`} text={entry.text} />
          </details>
        </li>
      );
  }
}

function EntryHead({ who, item, children }: { who: string; item: Item; children?: preact.ComponentChildren }) {
  return (
    <div class="entry-head">
      <strong>{who}</strong>
      <time dateTime={new Date(item.at).toISOString()}>{timeText(item.at)}</time>
      <span class="grow" />
      {children}
    </div>
  );
}

function UserMessage({ item, chat, isBusy }: { item: TextItem; chat: string; isBusy: boolean }) {
  const [isAsked, setIsAsked] = useState(false);
  return (
    <li class="entry from-user">
      <EntryHead who="You" item={item}>
        {mayDrive() ? (
          <Menu
            label={`More of your message of ${timeText(item.at)}`}
            icon="more"
            items={[
              { label: "Roll back to before this…", icon: "undo", isDisabled: isBusy, isDangerous: true, choose: () => setIsAsked(true) },
              { label: "Fork up to here", icon: "plus", choose: () => void fork(chat, item.item) },
            ]}
          />
        ) : null}
      </EntryHead>
      <div class="bubble">{item.text}</div>
      {item.images === undefined || item.images === 0 ? null : <p class="note">{item.images === 1 ? "With an image" : `With ${item.images} images`}</p>}
      {isAsked ? <RollBack chat={chat} item={item} whenClosed={() => setIsAsked(false)} /> : null}
    </li>
  );
}

const SCOPES = [
  { scope: "messages", label: "Messages", note: "This message and everything after it leave the chat. Files stay." },
  { scope: "files", label: "File changes", note: "Changes that tools made to files since then are taken back. The chat stays." },
  { scope: "both", label: "Both", note: "As if it had not been said." },
] as const;

function RollBack({ chat, item, whenClosed }: { chat: string; item: TextItem; whenClosed: () => void }) {
  const [scope, setScope] = useState<(typeof SCOPES)[number]["scope"]>("messages");
  return (
    <Dialog
      title="Roll back"
      whenClosed={whenClosed}
      foot={
        <>
          <Button label="Cancel" whenPressed={whenClosed} />
          <Button
            label="Roll back"
            kind="danger"
            whenPressed={() => {
              whenClosed();
              void rollBack(chat, item.item, scope);
            }}
          />
        </>
      }
    >
      <p>
        To before <q>{item.text.slice(0, 120)}</q>
      </p>
      <fieldset class="stack">
        <legend class="hidden">What is taken back</legend>
        {SCOPES.map((one) => (
          <label key={one.scope} class="check choice">
            <input type="radio" name="scope" checked={scope === one.scope} onChange={() => setScope(one.scope)} />
            <span>
              {one.label}
              <span class="note">{one.note}</span>
            </span>
          </label>
        ))}
      </fieldset>
    </Dialog>
  );
}

const STATES: Record<CallItem["state"], { label: string; tone: Tone }> = {
  preparing: { label: "Preparing", tone: "neutral" },
  waiting: { label: "Needs approval", tone: "warn" },
  running: { label: "Running", tone: "accent" },
  done: { label: "Done", tone: "good" },
  rejected: { label: "Not run", tone: "bad" },
  stopped: { label: "Stopped", tone: "neutral" },
  unknown: { label: "Outcome unknown", tone: "warn" },
};

const REJECTED = { user: "You denied it.", policy: "A rule denies it.", hook: "A hook denied it.", unasked: "Nobody could be asked." };

function Call({ item, chat, ask }: { item: CallItem; chat: string; ask: Ask | undefined }) {
  const state = item.isError && item.state === "done" ? { label: "Failed", tone: "bad" as Tone } : STATES[item.state];
  const isChange = item.details?.type === "file";
  const icon: IconName = isChange ? "diff" : item.details?.type === "shell" ? "terminal" : item.details?.type === "tasks" ? "check" : "plug";
  return (
    <li class="entry">
      <div class={`call${ask === undefined ? "" : " is-asked"}`}>
        <details open={ask !== undefined}>
          <summary>
            <Icon name={icon} />
            <span class="call-title">{item.summary === "" ? item.name : item.summary}</span>
            {item.details?.type === "file" ? (
              <span class="counts">
                <span class="tone-good">+{item.details.added}</span> <span class="tone-bad">−{item.details.removed}</span>
              </span>
            ) : null}
            <Badge tone={state.tone}>{state.label}</Badge>
          </summary>
          <div class="call-body">
            <p class="note">
              {item.server === null ? item.name : `${item.server}: ${item.name}`}
              {item.millis > 0 ? ` · ${durationText(item.millis)}` : ""}
              {item.rejectedBy === null ? "" : ` · ${REJECTED[item.rejectedBy]}`}
              {item.state === "unknown" ? " · The program ended while it ran. It is not run again." : ""}
            </p>
            <CallDetails details={item.details} />
            {isChange || item.details?.type === "tasks" ? null : <CallInput item={item} />}
            {item.output === "" || item.result !== "" ? null : <Pre label="Output so far" text={item.output} />}
            {item.result === "" ? null : <Pre label="Result" text={item.result} />}
          </div>
        </details>
        <Question chat={chat} ask={ask} />
      </div>
    </li>
  );
}

function Question({ chat, ask }: { chat: string; ask: Ask | undefined }) {
  return ask === undefined ? null : <AskCard key={ask.ask} chat={chat} ask={ask} />;
}

function CallInput({ item }: { item: CallItem }) {
  if (item.input === null || item.input === undefined) return item.inputText === "" ? null : <Pre label="Arguments" text={item.inputText} />;
  const members = Object.entries(item.input as Record<string, unknown>);
  if (members.length === 0) return null;
  return (
    <dl class="arguments">
      {members.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd>{typeof value === "string" ? value : JSON.stringify(value)}</dd>
        </div>
      ))}
    </dl>
  );
}

function CallDetails({ details }: { details: Details | null }) {
  switch (details?.type) {
    case "file":
      return <Diff path={details.path} text={details.diff} />;
    case "json":
      return (
        <>
          {details.texts.map((text) => (
            <Pre label="JSON" text={text} />
          ))}
        </>
      );
    case "subagent":
      return (
        <p>
          <a href={`#/chat/${details.chat}`}>Open the chat of {details.name}</a>{" "}
          <span class="note">
            {details.model} · step {details.step} of {details.maxSteps}
          </span>
        </p>
      );
    default:
      return null;
  }
}

/** A unified difference; the sign of a line says what its color says. */
function Diff({ path, text }: { path: string; text: string }) {
  const lines = text.trimEnd().split("\n").filter((line) => !line.startsWith("--- ") && !line.startsWith("+++ "));
  const kind = (line: string) => (line.startsWith("+") ? "is-added" : line.startsWith("-") ? "is-removed" : line.startsWith("@@") ? "is-place" : "");
  return (
    <figure class="diff-box">
      <figcaption class="code">{path}</figcaption>
      <pre tabIndex={0} role="region" aria-label={`Changes of ${path}`}>
        {lines.map((line) => (
          <span class={`diff-line ${kind(line)}`}>{line === "" ? " " : line}{"\n"}</span>
        ))}
      </pre>
    </figure>
  );
}

function Pre({ label, text }: { label: string; text: string }) {
  return (
    <div class="pre-box">
      <p class="note">{label}</p>
      <pre tabIndex={0} role="region" aria-label={label}>
        {text}
      </pre>
    </div>
  );
}

function RemarkView({ remark }: { remark: Remark }) {
  return (
    <li class={`entry remark tone-${remark.tone}`}>
      <Icon name={remark.tone === "neutral" ? "info" : "warning"} /> <span>{remark.text}</span>
    </li>
  );
}
