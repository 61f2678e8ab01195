// The state of the page: what the process told, and what only this page knows. One object, changed by `update`, read by
// `usePage`. Knows no component.
import { useEffect, useState } from "preact/hooks";
import type { About, Ask, Chat, Entry, Problem, Summary, Theme, Usage } from "./types";

/** The chat that is open. */
export interface OpenChat {
  key: string;
  phase: "loading" | "shown" | "failed";
  problem?: Problem;
  chat?: Chat;
  entries: Entry[];
  /** The names of the entries, while the chat is put together. */
  building?: Set<string>;
  asks: Record<string, Ask>;
  usage?: Usage;
  isBusy: boolean;
  progress: string;
  /** Text for the running turn that was not read yet. */
  steering: string;
}

export interface Notice {
  id: number;
  tone: "info" | "bad";
  text: string;
}

export interface Page {
  phase: "starting" | "no-session" | "ready";
  isLinked: boolean;
  about: About | undefined;
  theme: Theme;
  chats: Summary[];
  isListWhole: boolean;
  isListRead: boolean;
  search: string;
  isHere: boolean;
  open: OpenChat | undefined;
  notices: Notice[];
  /** For screen readers. */
  said: string;
  /** Why the server has ended the session of this page. */
  farewell: string;
}

let page: Page = {
  phase: "starting",
  isLinked: true,
  about: undefined,
  theme: "auto",
  chats: [],
  isListWhole: true,
  isListRead: false,
  search: "",
  isHere: false,
  open: undefined,
  notices: [],
  said: "",
  farewell: "",
};

const listeners = new Set<() => void>();
let isPlanned = false;

export const current = () => page;

/** Whether this page may do more than look: it does on this machine, and by its role on a server. */
export const mayDrive = () => page.about?.account === undefined || page.about.account.role !== "view";

/** Changes the state; the components are told once for all changes of a moment. */
export function update(change: Partial<Page> | ((before: Page) => Partial<Page>)) {
  page = { ...page, ...(typeof change === "function" ? change(page) : change) };
  if (isPlanned) return;
  isPlanned = true;
  queueMicrotask(() => {
    isPlanned = false;
    for (const listener of listeners) listener();
  });
}

/** Changes the open chat, if it still is this one. */
export function updateOpen(key: string, change: (before: OpenChat) => Partial<OpenChat>) {
  update((before) => (before.open?.key === key ? { open: { ...before.open, ...change(before.open) } } : {}));
}

export function usePage(): Page {
  const [seen, setSeen] = useState(page);
  useEffect(() => {
    const listener = () => setSeen(page);
    listeners.add(listener);
    // What changed before this was subscribed counts too.
    listener();
    return () => void listeners.delete(listener);
  }, []);
  return seen;
}

let noticeCount = 0;

/** A short text at the edge of the page, which goes away by itself; problems stay longer. */
export function tell(text: string, tone: Notice["tone"] = "info") {
  noticeCount += 1;
  const id = noticeCount;
  update((before) => ({ notices: [...before.notices.slice(-3), { id, tone, text }] }));
  setTimeout(() => closeNotice(id), tone === "bad" ? 12_000 : 5000);
}

export function closeNotice(id: number) {
  update((before) => ({ notices: before.notices.filter((notice) => notice.id !== id) }));
}

export function tellProblem(problem: Problem) {
  tell(problem.hint === undefined || problem.hint === null ? problem.message : `${problem.message} ${problem.hint}`, "bad");
}
