// The list of chats: search, where each stands, what runs.
import { useEffect, useRef } from "preact/hooks";
import { Badge, Button, Empty, Loading } from "../../common/parts";
import { readList, readMore } from "./actions";
import { update } from "./store";
import type { Page } from "./store";
import type { Summary } from "./types";
import { costText, folderText, timeText } from "./words";

const SEARCH_AFTER = 200;

export function ChatList({ page }: { page: Page }) {
  // A chat in which nothing was said is nothing to come back to.
  const chats = page.chats.filter((chat) => chat.messages > 0 || chat.key === page.open?.key);
  const field = useRef<HTMLInputElement>(null);
  useEffect(() => {
    const whenKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog") !== null;
      if (event.key !== "/" || isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      field.current?.focus();
    };
    addEventListener("keydown", whenKey);
    return () => removeEventListener("keydown", whenKey);
  }, []);
  const isFirst = useRef(true);
  useEffect(() => {
    if (isFirst.current) {
      isFirst.current = false;
      return undefined;
    }
    const waiting = setTimeout(() => void readList(), SEARCH_AFTER);
    return () => clearTimeout(waiting);
  }, [page.search, page.isHere]);
  return (
    <nav class="list-pane" aria-label="Chats">
      <div class="list-head">
        <label class="hidden" for="search">
          Search the chats
        </label>
        <input
          id="search"
          ref={field}
          class="input"
          type="search"
          placeholder="Search the chats  ( / )"
          autocomplete="off"
          value={page.search}
          onInput={(event) => update({ search: event.currentTarget.value })}
        />
        <label class="check small">
          <input type="checkbox" checked={page.isHere} onChange={(event) => update({ isHere: event.currentTarget.checked })} />
          <span>Only {folderText(page.about?.folders[0]) || "this folder"}</span>
        </label>
      </div>
      {!page.isListRead ? (
        <Loading text="Reading the chats…" />
      ) : chats.length === 0 ? (
        <Empty
          icon={page.search === "" ? "chat" : "search"}
          title={page.search === "" ? "No chats yet" : "Nothing was found"}
          text={page.search === "" ? "Chats of every editor and terminal of this machine appear here." : "One message or title must have all the words."}
        />
      ) : (
        <ul class="chat-list">
          {chats.map((chat) => (
            <Row key={chat.key} chat={chat} isOpen={chat.key === page.open?.key} />
          ))}
        </ul>
      )}
      {page.isListWhole ? null : <Button label="Older chats" kind="quiet" whenPressed={() => void readMore()} />}
    </nav>
  );
}

function Row({ chat, isOpen }: { chat: Summary; isOpen: boolean }) {
  return (
    <li>
      <a class="chat-row" href={`#/chat/${chat.key}`} aria-current={isOpen ? "page" : undefined}>
        <span class="chat-row-title">{chat.title ?? "New chat"}</span>
        <RunningBadge chat={chat} />
        <span class="note chat-row-place">
          {folderText(chat.folders[0])} · {timeText(chat.updatedAt)}
          {chat.running?.costUsd === undefined || chat.running.costUsd === null ? "" : ` · ${costText(chat.running.costUsd)}`}
        </span>
        {chat.excerpt === null ? null : <span class="note excerpt">{chat.excerpt}</span>}
      </a>
    </li>
  );
}

function RunningBadge({ chat }: { chat: Summary }) {
  if (chat.running === undefined) return null;
  const { state, waitsFor } = chat.running;
  if (state === "waiting") return <Badge tone="warn">{waitsFor?.startsWith("an approval") === true ? "Needs approval" : "Has a question"}</Badge>;
  return state === "answering" ? <Badge tone="accent">Answering</Badge> : <Badge>Open</Badge>;
}
