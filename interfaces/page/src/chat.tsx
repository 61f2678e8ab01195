// The chat of a tab: what was said, what waits, what is being made, and the box to write in.
import { useEffect, useRef, useState } from "preact/hooks";
import { revertTo, sendMessage, takeBack } from "./actions";
import { sizeText, timeText } from "./files";
import { Icon } from "../../../web/common/icons";
import { Badge, Button, Empty } from "../../../web/common/parts";
import { update } from "./store";
import type { Studio } from "./store";
import type { Message, Tab } from "./types";

const FORMATS = { openapi3: "OpenAPI 3", swagger2: "Swagger 2.0", graphql: "GraphQL" };

export function Chat({ studio, tab }: { studio: Studio; tab: Tab }) {
  const end = useRef<HTMLDivElement>(null);
  const phase = tab.state === "generating" || tab.state === "customizing" ? tab.state : undefined;
  const progress = studio.progress[tab.id] ?? (phase === undefined ? undefined : { phase, received: 0, tail: "" });
  const last = tab.chat[tab.chat.length - 1];
  useEffect(() => {
    end.current?.scrollIntoView({ block: "end" });
  }, [tab.id, last?.id, last?.status, progress === undefined]);
  return (
    <section class="chat" aria-label="Chat">
      <header class="pane-head">
        <div class="pane-title">
          <h2>{tab.specification?.title ?? tab.title}</h2>
          {tab.specification === null ? (
            <p class="note">No specification yet</p>
          ) : (
            <p class="note">
              {FORMATS[tab.specification.format]} · {tab.specification.operations} operations
              {tab.specification.version === "" ? "" : ` · ${tab.specification.version}`}
            </p>
          )}
        </div>
      </header>
      <div class="messages" role="log" aria-label="Messages" aria-live="polite" tabIndex={0}>
        {tab.chat.length === 0 && progress === undefined ? (
          <Empty
            icon="chat"
            title={tab.specification === null ? "Start with a specification" : "Change it by talking"}
            text={
              tab.specification === null
                ? "Drop a file on the right, or paste an address or the whole text here. You can also ask what is supported."
                : "Say what you would like: “hide the id column”, “show books as cards”, “sort by price”."
            }
          />
        ) : null}
        <Warnings tab={tab} />
        <ol class="message-list">
          {tab.chat.map((message) => (
            <ChatMessage key={message.id} tab={tab} message={message} />
          ))}
        </ol>
        {progress === undefined ? null : <Making {...progress} />}
        <div ref={end} />
      </div>
      <Composer key={tab.id} tab={tab} />
    </section>
  );
}

/** What the specification could do better; it can be used all the same. */
function Warnings({ tab }: { tab: Tab }) {
  const warnings = tab.specification?.warnings ?? [];
  if (warnings.length === 0) return null;
  return (
    <details class="warnings">
      <summary>
        <Icon name="warning" /> {warnings.length === 1 ? "One warning" : `${warnings.length} warnings`} about the specification
      </summary>
      <ul>
        {warnings.map((warning) => (
          <li key={`${warning.place} ${warning.message}`}>
            <p>{warning.message}</p>
            {warning.place === "" ? null : <code class="code">{warning.place}</code>}
            <p class="note">{warning.advice}</p>
          </li>
        ))}
      </ul>
    </details>
  );
}

/** The message that an answer is about, where it does not stand right before it. */
function about(tab: Tab, message: Message) {
  const before = tab.chat[tab.chat.findIndex((one) => one.id === message.id) - 1];
  if (message.replyTo === undefined || message.replyTo === null || before?.id === message.replyTo) return undefined;
  return tab.chat.find((one) => one.id === message.replyTo)?.text;
}

function ChatMessage({ tab, message }: { tab: Tab; message: Message }) {
  const place = tab.chat.filter((one) => one.status === "queued").findIndex((one) => one.id === message.id);
  const isLast = tab.chat[tab.chat.length - 1]?.id === message.id;
  return (
    <li class={`message from-${message.role} is-${message.status}`}>
      <p class="message-head">
        <strong>{message.role === "user" ? "You" : "Dragoman"}</strong>
        <time dateTime={new Date(message.time).toISOString()}>{timeText(message.time)}</time>
        {message.status === "queued" ? <Badge tone="warn">Waiting · {place + 1} in line</Badge> : null}
        {message.status === "pending" && message.role === "user" ? <Badge tone="accent">In progress</Badge> : null}
      </p>
      {message.role === "user" ? null : <About text={about(tab, message)} />}
      {message.text === "" ? null : <div class="bubble">{message.text}</div>}
      {message.problem === null ? null : <MessageProblem tab={tab} message={message} />}
      {message.assumptions.length === 0 ? null : (
        <div class="assumed">
          <p>Assumed</p>
          <ul>
            {message.assumptions.map((text) => (
              <li key={text}>{text}</li>
            ))}
          </ul>
        </div>
      )}
      {message.status === "queued" ? (
        <div class="row">
          <Button label="Take back" kind="quiet" whenPressed={() => void takeBack(tab.id, message.id)} />
        </div>
      ) : null}
      {message.version === null ? null : <VersionNote tab={tab} version={message.version} />}
      {message.options.length > 0 ? <Options tab={tab} message={message} isOpen={message.isQuestion ? message.answered === null : isLast} /> : null}
    </li>
  );
}

function About({ text }: { text: string | undefined }) {
  return text === undefined ? null : <p class="quote about">{text}</p>;
}

function MessageProblem({ tab, message }: { tab: Tab; message: Message }) {
  const problem = message.problem;
  if (problem === null) return null;
  const isOwn = message.role === "user";
  const alternatives = (problem.data as { alternatives?: unknown } | undefined)?.alternatives;
  const offers = Array.isArray(alternatives) ? alternatives.filter((one) => typeof one === "string").slice(0, 4) : [];
  return (
    <div class="message-problem">
      <p class="callout-title">
        <Icon name="warning" /> {problem.message}
      </p>
      {problem.hint === undefined ? null : <p>{problem.hint}</p>}
      <div class="row">
        {isOwn ? <Button label="Try again" icon="reload" kind="quiet" whenPressed={() => void sendMessage(tab.id, message.text)} /> : null}
        {offers.map((offer) => (
          <Button key={offer} label={offer} whenPressed={() => void sendMessage(tab.id, offer)} />
        ))}
      </div>
    </div>
  );
}

function VersionNote({ tab, version }: { tab: Tab; version: number }) {
  const isCurrent = tab.current === version;
  return (
    <div class="version-note">
      <Icon name="check" />
      <span>Version {version}</span>
      {isCurrent ? <Badge tone="good">Shown</Badge> : null}
      <span class="grow" />
      {isCurrent && version > 1 ? (
        <Button label="Undo" icon="undo" kind="quiet" hint={`Go back to version ${version - 1}`} whenPressed={() => void revertTo(tab.id, version - 1)} />
      ) : null}
      {isCurrent ? null : <Button label="Restore" icon="undo" kind="quiet" whenPressed={() => void revertTo(tab.id, version)} />}
      <Button label="History" kind="quiet" whenPressed={() => update({ panel: "history" })} />
    </div>
  );
}

/** Answers to a question, or things that could be said next. */
function Options({ tab, message, isOpen }: { tab: Tab; message: Message; isOpen: boolean }) {
  if (!isOpen)
    return message.answered === null ? null : (
      <p class="note">
        You chose <strong>{message.answered}</strong>
      </p>
    );
  const choose = (option: string) => void sendMessage(tab.id, option, message.isQuestion ? message.id : undefined);
  return (
    <div class="options" role="group" aria-label={message.isQuestion ? "Choose an answer" : "Suggestions"}>
      {message.options.map((option) => (
        <button key={option} type="button" class="chip" onClick={() => choose(option)}>
          {option}
        </button>
      ))}
    </div>
  );
}

const PHASES = {
  reading: "Reading the specification",
  generating: "Building the interface",
  customizing: "Making the change",
  checking: "Checking the code",
};

function Making({ phase, received, tail }: { phase: keyof typeof PHASES; received: number; tail: string }) {
  const code = useRef<HTMLPreElement>(null);
  useEffect(() => {
    if (code.current !== null) code.current.scrollTop = code.current.scrollHeight;
  }, [tail]);
  return (
    <div class="making">
      <p role="status">
        <span class="spinner" aria-hidden="true" /> {PHASES[phase]}…
      </p>
      <div class="bar" role="progressbar" aria-label={PHASES[phase]} />
      {received === 0 ? null : <p class="note">{sizeText(received)} of code so far</p>}
      {tail === "" ? null : (
        <pre ref={code} class="code" aria-hidden="true">
          {tail.slice(-1200)}
        </pre>
      )}
    </div>
  );
}

function Composer({ tab }: { tab: Tab }) {
  const [text, setText] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  const isEmpty = text.trim() === "";
  const hasInterface = tab.current !== null;
  const send = () => {
    if (isEmpty) return;
    setText("");
    void sendMessage(tab.id, text).then((sent) => {
      // What could not be sent is not lost.
      if (sent === undefined) setText((now) => (now === "" ? text : now));
    });
  };
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 180)}px`;
  }, [text]);
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      <div class="composer-box">
        <label class="hidden" for="composer">
          {hasInterface ? "Describe a change or ask a question" : "Paste a specification or an address, or ask a question"}
        </label>
        <textarea
          id="composer"
          ref={box}
          rows={2}
          value={text}
          placeholder={hasInterface ? "Describe a change or ask a question" : "Paste a specification or an address"}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            send();
          }}
        />
        <Button label="Send" icon="send" kind="primary" isIconOnly type="submit" isDisabled={isEmpty} />
      </div>
      <p class="note composer-note">Enter sends, Shift+Enter makes a new line. Changes run one after the other.</p>
    </form>
  );
}
