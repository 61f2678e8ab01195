// The frames of all tabs: which version each shows, and what follows when one cannot be shown. They live outside of the
// components, because a frame that is moved in the document loses everything it holds.
import { call, callInParts, problemOf } from "./api";
import { FrameHost } from "./frame-host";
import type { FrameListener } from "./frame-host";
import { saveBlob } from "./files";
import { current, tell, update } from "./store";
import type { FrameState } from "./store";
import type { NetworkRequest, NetworkResponse } from "../frame/protocol";
import type { Connection, NetworkAnswer, Tab, Version } from "./types";

interface Slot {
  shown?: FrameHost;
  coming?: FrameHost;
  /** The version that is shown or on its way. */
  version: number;
  route: string;
  memory: Record<string, string>;
  /** When it failed lately. */
  failures: number[];
}

/** So many failures in a minute, and nothing more is tried without the user. */
const MOST_FAILURES = 3;
const MINUTE = 60_000;

let place: HTMLElement | undefined;
let active: string | undefined;
const slots = new Map<string, Slot>();

export const isDark = () => {
  const { theme } = current().told.preferences;
  return theme === "dark" || (theme === "auto" && matchMedia("(prefers-color-scheme: dark)").matches);
};
const themeName = () => (isDark() ? "dark" : "light");

/** The element that holds the frames. */
export function setFramePlace(element: HTMLElement) {
  place = element;
  sizes.disconnect();
  sizes.observe(element);
}

const sizes = new ResizeObserver(([entry]) => {
  if (entry === undefined) return;
  const { width, height } = entry.contentRect;
  for (const { shown } of slots.values()) shown?.resize(width, height);
});

/** Shows the tab's frame and hides the others; makes it where it is missing or of another version. */
export function showFrame(tab: Tab | undefined) {
  active = tab?.id;
  for (const [id, slot] of slots) {
    const isShown = id === active;
    if (slot.shown !== undefined && slot.shown.element.hidden === isShown) {
      slot.shown.wake();
      slot.shown.element.hidden = !isShown;
    }
  }
  if (tab !== undefined && tab.current !== null) void load(tab, tab.current);
}

/** Makes the frame of a tab anew, after its user asked for it. */
export function reloadFrame(tab: Tab) {
  dropFrame(tab.id);
  showFrame(tab);
}

export function dropFrame(id: string) {
  const slot = slots.get(id);
  slot?.shown?.destroy();
  slot?.coming?.destroy();
  slots.delete(id);
}

/** Frames of tabs that are closed. */
export function dropOtherFrames(tabs: Tab[]) {
  for (const id of slots.keys()) if (!tabs.some((tab) => tab.id === id)) dropFrame(id);
}

let sessions = 0;

/** Somebody signed in to the API of a tab: its interface loads again what failed. */
export function renewFrame(id: string) {
  sessions += 1;
  slots.get(id)?.shown?.renew(String(sessions));
}

/** The same for all tabs whose connection works now and did not before. */
export function renewFrames(before: Connection[], now: Connection[]) {
  const isNew = (one: Connection) =>
    one.state === "connected" && before.find((other) => other.key === one.key)?.state !== "connected";
  for (const id of new Set(now.filter(isNew).flatMap((one) => one.tabs))) renewFrame(id);
}

export function setFrameThemes() {
  for (const { shown } of slots.values()) shown?.setTheme(themeName());
}

function setState(id: string, state: FrameState) {
  update((before) => ({ frames: { ...before.frames, [id]: state } }));
}

async function load(tab: Tab, version: number) {
  const slot = slots.get(tab.id) ?? { version: 0, route: "", memory: {}, failures: [] };
  if (slot.version === version || place === undefined) return;
  slots.set(tab.id, slot);
  slot.version = version;
  setState(tab.id, { phase: slot.shown === undefined ? "loading" : "shown", version });
  try {
    const { script } = await call<{ script: string }>("GET", `/tabs/${tab.id}/versions/${version}/script`);
    if (slot.version !== version || slots.get(tab.id) !== slot) return;
    slot.coming?.destroy();
    slot.coming = makeFrame(tab, slot, version, script);
    place.append(slot.coming.element);
  } catch (error) {
    if (slot.version === version) await fail(tab.id, slot, version, problemOf(error).message);
  }
}

function makeFrame(tab: Tab, slot: Slot, version: number, script: string): FrameHost {
  const address = `${location.protocol}//localhost:${location.port}/frame`;
  const { route, memory } = slot;
  const title = `Interface of ${tab.specification?.title ?? tab.title}`;
  const host: FrameHost = new FrameHost({ address, script, theme: themeName(), route, memory, title }, listenerOf(tab.id, slot, version, () => host));
  host.element.dataset.version = String(version);
  // It is drawn behind the one that is shown until it is complete.
  host.element.classList.add("frame-coming");
  return host;
}

function listenerOf(id: string, slot: Slot, version: number, host: () => FrameHost): FrameListener {
  return {
    whenRendered() {
      if (slot.coming !== host()) return;
      slot.shown?.destroy();
      slot.shown = slot.coming;
      slot.coming = undefined;
      slot.shown.element.classList.remove("frame-coming");
      slot.shown.element.hidden = id !== active;
      setState(id, { phase: "shown", version });
      void call("POST", `/tabs/${id}/versions/${version}/outcome`, { isRendered: true }).catch(() => {});
    },
    whenFailed(message) {
      if (slot.coming === host()) slot.coming = undefined;
      if (slot.shown === host()) slot.shown = undefined;
      void fail(id, slot, version, message);
    },
    whenLogged(kind, message) {
      const level = kind === "log" ? "info" : kind === "blocked" ? "warning" : "error";
      void call("POST", `/tabs/${id}/frame-log`, { level, kind, message }).catch(() => {});
    },
    whenRouted(route) {
      slot.route = route;
    },
    whenRemembered(memory) {
      slot.memory = memory;
    },
    request: (request, whenPart, signal) => (request.inParts ? forwardInParts(id, request, whenPart, signal) : forward(id, request)),
    save(blob, name) {
      saveBlob(blob, name);
      tell(`Saved ${name}.`);
    },
    copy(text) {
      void navigator.clipboard.writeText(text).then(() => tell("Copied."), () => {});
    },
  };
}

/**
 * The last safe version itself is started again. After another one the process goes back to it, which comes as an event. Without
 * one, or when that fails again and again, the reason is shown.
 */
async function fail(id: string, slot: Slot, version: number, message: string) {
  if (slots.get(id) !== slot) return;
  const now = Date.now();
  slot.failures = [...slot.failures.filter((time) => now - time < MINUTE), now];
  const isTried = slot.failures.length <= MOST_FAILURES;
  const tab = current().told.tabs.find((one) => one.id === id);
  if (isTried && tab !== undefined && tab.lastSafe === version && tab.current === version) {
    tell(`${message} It was started again.`, "bad");
    slot.version = 0;
    if (id === active) await load(tab, version);
    return;
  }
  let next: Version | null = null;
  if (isTried) {
    const outcome = { isRendered: false, message };
    const answer = call<{ version: Version | null }>("POST", `/tabs/${id}/versions/${version}/outcome`, outcome);
    next = await answer.then((told) => told.version, () => null);
  }
  if (next !== null) {
    tell(`Version ${version} could not be shown: ${message} The last version that worked is back.`, "bad");
    return;
  }
  if (slot.version === version) setState(id, { phase: "failed", version, message });
}

async function forward(id: string, request: NetworkRequest): Promise<NetworkResponse> {
  try {
    return responseOf(await call<NetworkAnswer>("POST", `/tabs/${id}/network`, sentOf(request)));
  } catch (error) {
    return { error: problemOf(error).message };
  }
}

/** A browser opens few connections to one server, and each of these keeps one. */
const MOST_STREAMS = 3;
let streams = 0;

async function forwardInParts(id: string, request: NetworkRequest, whenPart: (text: string) => void, signal: AbortSignal): Promise<NetworkResponse> {
  if (streams >= MOST_STREAMS) return { error: `${MOST_STREAMS} answers are being received already. Stop one of them first.` };
  let response: NetworkResponse = { error: "The answer broke off." };
  streams += 1;
  try {
    const take = (name: string, data: unknown) => {
      if (name === "part") whenPart(String((data as { text?: unknown }).text ?? ""));
      else if (name === "answer") response = responseOf(data as NetworkAnswer);
    };
    await callInParts(`/tabs/${id}/network`, { ...sentOf(request), inParts: true }, take, signal);
    return response;
  } catch (error) {
    return { error: signal.aborted ? "The request was stopped." : problemOf(error).message };
  } finally {
    streams -= 1;
  }
}

function sentOf({ method, path, query, headers, text, base64 }: NetworkRequest) {
  return { method, path, query, headers, body: text !== undefined ? { text } : base64 !== undefined ? { base64 } : null };
}

function responseOf(answer: NetworkAnswer): NetworkResponse {
  if ("error" in answer) return { error: answer.error.message };
  return { status: answer.status, headers: answer.headers.map(([name, value]) => [name.toLowerCase(), value]), ...answer.body };
}
