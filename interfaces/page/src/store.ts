// The state of the page: what the process told, and what only this page knows. One store, changed by `update`, read by
// `useStudio`. Knows no component.
import { stateOf } from "../../../web/common/state";
import type { Notice } from "../../../web/common/state";
import type { ConsoleEntry, Progress, State, Tab, Version } from "./types";

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

const first: Studio = {
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

export const { current, update, useCurrent: useStudio, tell, closeNotice, tellProblem } = stateOf(first);

export const activeTab = (of: Studio = current()): Tab | undefined => of.told.tabs.find((tab) => tab.id === of.active);
