// The state of the page: what the process told, and what only this page knows. One store, changed by `update`, read by
// `useStudio`. Knows no component.
import { useEffect, useState } from "preact/hooks";
import type { ConsoleEntry, Problem, Progress, State, Tab, Version } from "./types";

export type Panel = "history" | "connection" | "plugins" | undefined;

/** How the frame of a tab does. */
export interface FrameState {
  phase: "loading" | "shown" | "failed";
  version: number;
  message?: string;
}

export interface Studio {
  phase: "starting" | "no-session" | "ready";
  isLinked: boolean;
  told: State;
  /** Preferences were changed here and the process does not have them yet. */
  isKeepingPreferences: boolean;
  active: string | undefined;
  panel: Panel;
  isConsoleShown: boolean;
  view: "chat" | "interface";
  progress: Record<string, { phase: Progress["phase"]; received: number; tail: string }>;
  versions: Record<string, Version[]>;
  entries: ConsoleEntry[];
  frames: Record<string, FrameState>;
  notices: Notice[];
}

export interface Notice {
  id: number;
  tone: "info" | "bad";
  text: string;
}

const EMPTY: State = {
  version: "",
  cli: { state: "starting", pid: null, restarts: 0, pending: 0, message: null },
  tabs: [],
  closed: [],
  connections: [],
  plugins: [],
  toolCalls: [],
  preferences: { chatWidth: 30, theme: "auto", activeTab: null },
};

let studio: Studio = {
  phase: "starting",
  isLinked: true,
  told: EMPTY,
  isKeepingPreferences: false,
  active: undefined,
  panel: undefined,
  isConsoleShown: false,
  view: "interface",
  progress: {},
  versions: {},
  entries: [],
  frames: {},
  notices: [],
};

const listeners = new Set<() => void>();
let isPlanned = false;

export const current = () => studio;

/** Changes the state; the components are told once for all changes of a moment. */
export function update(change: Partial<Studio> | ((before: Studio) => Partial<Studio>)) {
  studio = { ...studio, ...(typeof change === "function" ? change(studio) : change) };
  if (isPlanned) return;
  isPlanned = true;
  queueMicrotask(() => {
    isPlanned = false;
    for (const listener of listeners) listener();
  });
}

export function subscribe(listener: () => void) {
  listeners.add(listener);
  return () => void listeners.delete(listener);
}

export function useStudio(): Studio {
  const [seen, setSeen] = useState(studio);
  useEffect(() => {
    // What changed before this was subscribed counts too.
    setSeen(studio);
    return subscribe(() => setSeen(studio));
  }, []);
  return seen;
}

export const activeTab = (of: Studio = studio): Tab | undefined => of.told.tabs.find((tab) => tab.id === of.active);

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
  tell(problem.hint === undefined ? problem.message : `${problem.message} ${problem.hint}`, "bad");
}
