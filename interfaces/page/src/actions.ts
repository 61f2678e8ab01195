// What the controls of the page ask of the process. Failures are told; the results come back as events.
import { call, problemOf } from "./api";
import { current, tellProblem, update } from "./store";
import type { Message, Preferences, Tab, Version } from "./types";

/** Runs a call and tells its failure; gives whether it worked. */
export async function attempt<T>(work: Promise<T>): Promise<T | undefined> {
  try {
    return await work;
  } catch (error) {
    tellProblem(problemOf(error));
    return undefined;
  }
}

export async function openTab() {
  const tab = await attempt(call<Tab>("POST", "/tabs", {}));
  if (tab !== undefined) update({ active: tab.id, view: "interface" });
}

export const closeTab = (id: string) => attempt(call("DELETE", `/tabs/${id}`));
export const renameTab = (id: string, title: string) => attempt(call("PATCH", `/tabs/${id}`, { title }));

export async function reopenTab(id: string) {
  const tab = await attempt(call<Tab>("POST", `/tabs/${id}/reopen`, {}));
  if (tab !== undefined) update({ active: tab.id });
}

/** Moves a tab before the one at `to`; the page shows it at once. */
export function moveTab(id: string, to: number) {
  const { told } = current();
  const from = told.tabs.findIndex((tab) => tab.id === id);
  const at = Math.min(Math.max(to, 0), told.tabs.length - 1);
  if (from < 0 || from === at) return;
  const tabs = told.tabs.filter((tab) => tab.id !== id);
  tabs.splice(at, 0, told.tabs[from] as Tab);
  update({ told: { ...told, tabs } });
  void attempt(call("PUT", "/tabs", { order: tabs.map((tab) => tab.id) }));
}

export const sendMessage = (id: string, text: string, answerTo?: string) =>
  attempt(call<{ message: Message }>("POST", `/tabs/${id}/messages`, { text, answerTo }));

export const takeBack = (id: string, message: string) => attempt(call("DELETE", `/tabs/${id}/messages/${message}`));

export const revertTo = (id: string, version: number) =>
  attempt(call<Version>("POST", `/tabs/${id}/versions/${version}/revert`, {}));

/** Generates again from the specification that the tab has. */
export const buildAgain = (id: string) => attempt(call("POST", `/tabs/${id}/generate`, {}));

export const restartCli = () => attempt(call("POST", "/cli/restart", {}));

export async function loadVersions(id: string): Promise<boolean> {
  const known = current().versions[id] ?? [];
  const before = known.length === 0 ? "" : `&before=${known[known.length - 1]?.number}`;
  const answer = await attempt(call<{ versions: Version[]; more: boolean }>("GET", `/tabs/${id}/versions?limit=50${before}`));
  if (answer === undefined) return false;
  update((now) => ({ versions: { ...now.versions, [id]: [...(now.versions[id] ?? known), ...answer.versions.filter((one) => !known.some((other) => other.number === one.number))] } }));
  return answer.more;
}

let timer = 0;

/** Shown at once, kept a moment after the last change. Until then what the process tells is older than what is shown. */
export function setPreferences(change: Partial<Preferences>) {
  update(({ told }) => ({ told: { ...told, preferences: { ...told.preferences, ...change } }, isKeepingPreferences: true }));
  clearTimeout(timer);
  const own = window.setTimeout(async () => {
    await attempt(call("PUT", "/preferences", current().told.preferences));
    if (timer === own) update({ isKeepingPreferences: false });
  }, 250);
  timer = own;
}
