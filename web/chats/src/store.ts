// The state of the page: what the process told, and what only this page knows. One object, changed by `update`, read by
// `usePage`. Knows no component.
import type { Problem } from "../../common/problem";
import { stateOf } from "../../common/state";
import type { Notice } from "../../common/state";
import type { About, Ask, Chat, Entry, Summary, Theme, Usage } from "./types";

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

const first: Page = {
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

export const { current, update, useCurrent: usePage, tell, closeNotice, tellProblem } = stateOf(first);

/** Whether this page may do more than look: it does on this machine, and by its role on a server. */
export const mayDrive = () => current().about?.account?.role !== "view";

/** Changes the open chat, if it still is this one. */
export function updateOpen(key: string, change: (before: OpenChat) => Partial<OpenChat>) {
  update((before) => (before.open?.key === key ? { open: { ...before.open, ...change(before.open) } } : {}));
}
