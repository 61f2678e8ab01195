// One chat: its head, its items, what it waits for, and the box to write in.
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { Icon } from "../../common/icons";
import { Badge, Button, Dialog, Empty, Loading, Menu, ProblemNote, TextField } from "../../common/parts";
import { fork, goTo, prompt, rename, steer, stop } from "./actions";
import { AskCard } from "./asks";
import { Facts, tasksOf } from "./facts";
import { EntryView } from "./items";
import { mayDrive } from "./store";
import type { OpenChat, Page } from "./store";
import type { Ask } from "./types";
import { costText, folderText } from "./words";

export function ChatPane({ page, open }: { page: Page; open: OpenChat }) {
  if (open.phase === "failed" && open.problem !== undefined)
    return (
      <div class="chat-failed">
        <ProblemNote problem={open.problem}>
          <Button label="Back to the list" whenPressed={() => goTo(undefined)} />
        </ProblemNote>
      </div>
    );
  if (open.phase === "loading") return <Loading text="Opening the chat…" />;
  return (
    <div class="chat-columns">
      <section class="chat" aria-label="Conversation">
        <Head open={open} />
        <Holder open={open} />
        <Messages open={open} />
        {mayDrive() ? <Composer page={page} open={open} /> : <p class="note composer">Your role lets you look at this chat only.</p>}
      </section>
      <aside class="facts-pane" aria-label="Tasks and cost">
        <Facts open={open} />
      </aside>
    </div>
  );
}

function Head({ open }: { open: OpenChat }) {
  const [shown, setShown] = useState<"facts" | "rename">();
  const { chat } = open;
  const tasks = tasksOf(open);
  const done = tasks.filter((task) => task.status === "done").length;
  return (
    <header class="pane-head">
      <span class="only-narrow">
        <Button label="Back to the list" icon="back" kind="quiet" isIconOnly whenPressed={() => goTo(undefined)} />
      </span>
      <div class="pane-title">
        <h2>{chat?.title ?? "New chat"}</h2>
        <p class="note" title={chat?.folders.join(", ")}>
          {folderText(chat?.folders[0])}
          {chat?.model === null || chat?.model === undefined ? "" : ` · ${chat.model}`}
        </p>
      </div>
      <span class="grow" />
      <span class="only-not-wide">
        <Button label={`${tasks.length > 0 ? `${done}/${tasks.length} · ` : ""}${costText(open.usage?.costUsd)}`} icon="info" kind="quiet" hint="Tasks and cost" whenPressed={() => setShown("facts")} />
      </span>
      {mayDrive() ? (
        <Menu
          label="More of this chat"
          icon="more"
          items={[
            { label: "Fork", icon: "plus", note: "A new chat with everything that was said", choose: () => void fork(open.key) },
            { label: "Rename", icon: "text", choose: () => setShown("rename") },
          ]}
        />
      ) : null}
      {shown === "facts" ? (
        <Dialog title="Tasks and cost" kind="sheet" whenClosed={() => setShown(undefined)}>
          <Facts open={open} />
        </Dialog>
      ) : null}
      {shown === "rename" ? <Rename open={open} whenClosed={() => setShown(undefined)} /> : null}
    </header>
  );
}

function Rename({ open, whenClosed }: { open: OpenChat; whenClosed: () => void }) {
  const [title, setTitle] = useState(open.chat?.title ?? "");
  const save = () => {
    whenClosed();
    if (title.trim() !== "") void rename(open.key, title.trim());
  };
  return (
    <Dialog
      title="Rename the chat"
      whenClosed={whenClosed}
      foot={
        <>
          <Button label="Cancel" whenPressed={whenClosed} />
          <Button label="Rename" kind="primary" isDisabled={title.trim() === ""} whenPressed={save} />
        </>
      }
    >
      <TextField label="Title" value={title} whenChanged={setTitle} />
    </Dialog>
  );
}

/** Whose keys, rules and folder count. */
function Holder({ open }: { open: OpenChat }) {
  const { attachedTo, heldBy } = open.chat ?? {};
  if (attachedTo !== null && attachedTo !== undefined)
    return (
      <div class="banner tone-accent holder">
        <Icon name="link" />
        <p>
          This chat runs in {attachedTo}. Its keys, settings, sandbox and folder count.
        </p>
      </div>
    );
  if (heldBy !== null && heldBy !== undefined)
    return (
      <div class="banner tone-warn holder">
        <Icon name="warning" />
        <p>
          {heldBy} writes this chat, and it cannot be attached to from here: you can follow it, or fork it.
        </p>
        {mayDrive() ? <Button label="Fork" icon="plus" whenPressed={() => void fork(open.key)} /> : null}
      </div>
    );
  return null;
}

/** So many entries are drawn at first: a phone has to draw them too. */
const SHOWN_ENTRIES = 300;

function Messages({ open }: { open: OpenChat }) {
  const [count, setCount] = useState(SHOWN_ENTRIES);
  const entries = open.entries.slice(-count);
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useRef(true);
  const asks = Object.values(open.asks).filter((ask) => ask.answer === undefined);
  const byItem = useMemo(() => new Map(asks.filter((ask) => ask.item !== null).map((ask) => [ask.item, ask])), [open.asks]);
  const loose = asks.filter((ask) => ask.item === null || !open.entries.some((entry) => "item" in entry && entry.item === ask.item));
  useEffect(() => {
    // Who reads above is not moved.
    const element = box.current;
    if (element !== null && isAtEnd.current) element.scrollTop = element.scrollHeight;
  }, [open.entries, open.asks, open.isBusy, open.progress]);
  return (
    <div
      ref={box}
      class="messages"
      role="region"
      aria-label="Messages"
      tabIndex={0}
      onScroll={(event) => {
        const { scrollTop, scrollHeight, clientHeight } = event.currentTarget;
        isAtEnd.current = scrollHeight - scrollTop - clientHeight < 60;
      }}
    >
      {open.entries.length === 0 && !open.isBusy ? (
        <Empty icon="spark" title="What shall be done?" text={`Dragoman works in ${open.chat?.folders[0] ?? "this folder"} and asks before it changes anything that your rules do not allow.`} />
      ) : null}
      {open.entries.length > count ? (
        <div class="row center">
          <Button label={`Show ${open.entries.length - count} earlier entries`} kind="quiet" whenPressed={() => setCount(open.entries.length)} />
        </div>
      ) : null}
      <ol class="entries">
        {entries.map((entry) => (
          <EntryView key={"item" in entry ? entry.item : entry.id} entry={entry} chat={open.key} isBusy={open.isBusy} ask={"item" in entry ? byItem.get(entry.item) : undefined} />
        ))}
        {loose.map((ask: Ask) => (
          <li key={ask.ask} class="entry">
            <AskCard chat={open.key} ask={ask} />
          </li>
        ))}
      </ol>
      {open.isBusy ? (
        <p class="working">
          <span class="spinner" aria-hidden="true" /> {asks.length > 0 ? (mayDrive() ? "Waiting for your answer" : "Waiting for an answer") : open.progress === "" ? "Answering…" : open.progress}
        </p>
      ) : null}
      {open.steering === "" ? null : (
        <div class="steering">
          <Badge tone="warn">Read at the next step</Badge>
          <p>{open.steering}</p>
          {mayDrive() ? <Button label="Take back" kind="quiet" whenPressed={() => void steer(open.key, null)} /> : null}
        </div>
      )}
    </div>
  );
}

function Composer({ page, open }: { page: Page; open: OpenChat }) {
  const [text, setText] = useState("");
  const [model, setModel] = useState("");
  const [behavior, setBehavior] = useState("");
  const box = useRef<HTMLTextAreaElement>(null);
  const isEmpty = text.trim() === "";
  const isReadOnly = open.chat?.heldBy !== null && open.chat?.heldBy !== undefined;
  const catalog = page.about?.catalog;
  const send = async () => {
    if (isEmpty || isReadOnly) return;
    setText("");
    const settings = { ...(model === "" ? {} : { model }), ...(behavior === "" ? {} : { behavior }) };
    const isSent = open.isBusy ? await steer(open.key, text) : await prompt(open.key, text, settings);
    // What could not be sent is not lost.
    if (!isSent) setText((now) => (now === "" ? text : now));
  };
  useEffect(() => box.current?.focus({ preventScroll: true }), []);
  useEffect(() => {
    const element = box.current;
    if (element === null) return;
    element.style.height = "auto";
    element.style.height = `${Math.min(element.scrollHeight, 200)}px`;
  }, [text]);
  const label = open.isBusy ? "Steer the running turn" : "Write what to do";
  return (
    <form
      class="composer"
      onSubmit={(event) => {
        event.preventDefault();
        void send();
      }}
    >
      <div class="composer-box">
        <label class="hidden" for="composer">
          {label}
        </label>
        <textarea
          id="composer"
          ref={box}
          rows={2}
          value={text}
          placeholder={label}
          disabled={isReadOnly}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Escape" && open.isBusy) void stop(open.key);
            if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
            event.preventDefault();
            void send();
          }}
        />
        {open.isBusy ? <Button label="Stop" icon="stop" kind="danger" whenPressed={() => void stop(open.key)} /> : null}
        <Button label={open.isBusy ? "Steer" : "Send"} icon="send" kind="primary" isIconOnly type="submit" isDisabled={isEmpty || isReadOnly} />
      </div>
      <div class="composer-row">
        <Choice label="Model" value={model} first={`Model: ${open.chat?.model ?? catalog?.defaultModel ?? "default"}`} values={catalog?.models ?? []} whenChosen={setModel} />
        <Choice label="Behavior" value={behavior} first={`Behavior: ${open.chat?.behavior ?? catalog?.defaultBehavior ?? "agent"}`} values={catalog?.behaviors ?? []} whenChosen={setBehavior} />
        <p class="note composer-note">Enter sends, Shift+Enter makes a new line{open.isBusy ? ", Esc stops" : ""}.</p>
      </div>
    </form>
  );
}

function Choice({ label, value, first, values, whenChosen }: { label: string; value: string; first: string; values: string[]; whenChosen: (value: string) => void }) {
  return (
    <select class="input small choice-field" aria-label={label} value={value} onChange={(event) => whenChosen(event.currentTarget.value)}>
      <option value="">{first}</option>
      {values.map((one) => (
        <option key={one} value={one}>
          {one}
        </option>
      ))}
    </select>
  );
}
