// What each event of the process changes in the state of the page.
import { renewFrames } from "./frames";
import { current, update } from "./store";
import type { Studio } from "./store";
import type { Cli, ConsoleEntry, Progress, State, Tab, Version } from "./types";

const MOST_ENTRIES = 1000;
const TAIL = 4000;

/** The data is what docs/protocols/studio.md says of the event; an unknown event changes nothing. */
export function applyEvent(name: string, data: unknown) {
  const { connections } = current().told;
  update((before) => changeOf(before, name, data));
  if (name === "connections") renewFrames(connections, data as State["connections"]);
}

function changeOf(before: Studio, name: string, data: unknown): Partial<Studio> {
  const told = (change: Partial<State>): Partial<Studio> => ({ told: { ...before.told, ...change } });
  switch (name) {
    case "state":
      return whole(before, data as State);
    case "cli":
      return told({ cli: data as Cli });
    case "tab":
      return changedTab(before, data as Tab);
    case "tabs": {
      const { order, closed } = data as { order: string[]; closed: State["closed"] };
      const tabs = order.flatMap((id) => before.told.tabs.find((tab) => tab.id === id) ?? []);
      return { ...told({ tabs, closed }), active: stillActive(before, tabs) };
    }
    case "progress":
      return { progress: { ...before.progress, ...progressOf(before, data as Progress) } };
    case "version":
      return { versions: withVersion(before, data as { tab: string; version: Version }) };
    case "console":
      return { entries: [...before.entries, data as ConsoleEntry].slice(-MOST_ENTRIES) };
    case "consoleCleared":
      return { entries: [] };
    case "connections":
      return told({ connections: data as State["connections"] });
    case "plugins":
      // What versions miss may have changed with them.
      return { ...told({ plugins: data as State["plugins"] }), versions: {} };
    case "preferences":
      return before.isKeepingPreferences ? {} : told({ preferences: data as State["preferences"] });
    case "toolCalls":
      return told({ toolCalls: data as State["toolCalls"] });
    default:
      return {};
  }
}

function whole(before: Studio, told: State): Partial<Studio> {
  const first = before.active ?? told.preferences.activeTab ?? undefined;
  return { phase: "ready", told, active: stillActive({ ...before, active: first }, told.tabs), progress: {}, versions: {} };
}

/** The shown tab, or the one that takes its place. */
function stillActive(before: Studio, tabs: Tab[]) {
  if (tabs.some((tab) => tab.id === before.active)) return before.active;
  const at = before.told.tabs.findIndex((tab) => tab.id === before.active);
  return (tabs[Math.min(Math.max(at, 0), tabs.length - 1)] ?? tabs[0])?.id;
}

function changedTab(before: Studio, tab: Tab): Partial<Studio> {
  const isKnown = before.told.tabs.some((one) => one.id === tab.id);
  const tabs = isKnown ? before.told.tabs.map((one) => (one.id === tab.id ? tab : one)) : [...before.told.tabs, tab];
  const isBusy = tab.state === "generating" || tab.state === "customizing";
  const progress = isBusy ? before.progress : Object.fromEntries(Object.entries(before.progress).filter(([id]) => id !== tab.id));
  return { told: { ...before.told, tabs }, progress, active: before.active ?? tab.id };
}

function progressOf(before: Studio, { tab, phase, chunk, received }: Progress) {
  const known = before.progress[tab]?.phase === phase ? before.progress[tab].tail : "";
  return { [tab]: { phase, received, tail: (known + (chunk ?? "")).slice(-TAIL) } };
}

function withVersion(before: Studio, { tab, version }: { tab: string; version: Version }) {
  const known = before.versions[tab];
  if (known === undefined) return before.versions;
  return { ...before.versions, [tab]: [version, ...known.filter((one) => one.number !== version.number)] };
}
