// What the controls do: calls of the process. What they cause comes back as events.
import { CallError } from "../../common/problem";
import { call, forgetSession, problemOf, readEvents } from "./api";
import { apply, begin } from "./events";
import { current, tell, tellProblem, update, updateOpen } from "./store";
import type { About, Answer, Chat, Summary, Theme } from "./types";

const PAGE = 50;
const LIST_EVERY = 4000;

/** Does it, and tells what went wrong. */
async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof CallError && error.status === 401) {
      forgetSession();
      update({ phase: "no-session" });
    } else tellProblem(problemOf(error));
    return undefined;
  }
}

export async function readAbout() {
  const about = await call<About>("GET", "/state");
  update({ about, theme: about.theme, phase: "ready" });
}

let listTurn = 0;
let listUnderWay: Promise<void> | undefined;
let isListWanted = false;

/** Reads the list anew. One request at a time: a browser has few connections, and the chat needs one of them. */
export async function readList(): Promise<void> {
  if (listUnderWay !== undefined) {
    isListWanted = true;
    return listUnderWay;
  }
  listUnderWay = (async () => {
    do {
      isListWanted = false;
      await readListOnce();
    } while (isListWanted);
  })().finally(() => (listUnderWay = undefined));
  return listUnderWay;
}

/** As far as it was read before. */
async function readListOnce() {
  listTurn += 1;
  const turn = listTurn;
  const { search, isHere, chats } = current();
  const query = new URLSearchParams({ limit: String(Math.max(PAGE, Math.min(chats.length, 200))) });
  if (search.trim() !== "") query.set("search", search.trim());
  if (isHere) query.set("here", "true");
  try {
    const listed = await call<{ chats: Summary[]; isWhole: boolean }>("GET", `/chats?${query}`);
    // The answer to an older question is not shown.
    if (turn === listTurn) update({ chats: listed.chats, isListWhole: listed.isWhole, isListRead: true, isLinked: true });
  } catch (error) {
    if (error instanceof CallError && error.status === 401) {
      forgetSession();
      update({ phase: "no-session" });
    } else if (turn === listTurn) update({ isLinked: error instanceof CallError });
  }
}

export async function readMore() {
  const { chats, isHere } = current();
  const last = chats[chats.length - 1];
  if (last === undefined) return;
  const query = new URLSearchParams({ limit: String(PAGE), after: last.key, afterTime: String(last.updatedAt) });
  if (isHere) query.set("here", "true");
  const listed = await attempt(() => call<{ chats: Summary[]; isWhole: boolean }>("GET", `/chats?${query}`));
  if (listed === undefined) return;
  const known = new Set(chats.map((chat) => chat.key));
  update({ chats: [...chats, ...listed.chats.filter((chat) => !known.has(chat.key))], isListWhole: listed.isWhole });
}

/** The list is of all programs of this machine, so it is asked for again and again while somebody looks. */
export function keepListFresh() {
  setInterval(() => {
    if (document.visibilityState === "visible") void readList();
  }, LIST_EVERY);
}

let stream: AbortController | undefined;

/** Shows the chat that the address names. */
export function openFromAddress() {
  const key = /^#\/chat\/([^/]+)$/.exec(location.hash)?.[1];
  if (key === current().open?.key) return;
  stream?.abort();
  if (key === undefined) {
    update({ open: undefined });
    return;
  }
  stream = new AbortController();
  update({ open: begin(key), said: "" });
  void follow(key, stream.signal);
}

async function follow(key: string, signal: AbortSignal) {
  const whenEvent = (name: string, data: unknown) => {
    if (name === "end") {
      // The stream is read again where that can help.
      if ((data as { again?: boolean }).again === true) return;
      // The token was revoked, or the role is another one now.
      update({ farewell: (data as { message: string }).message });
      void readAbout().catch(() => {});
      return;
    }
    updateOpen(key, (open) => apply(open, name, data));
    say(name, data);
    if (name === "turn" || name === "chat") void readList();
  };
  try {
    await readEvents(`/chats/${key}/events`, whenEvent, (isLinked) => update({ isLinked }), signal);
  } catch (error) {
    if (error instanceof CallError && error.status === 401) {
      forgetSession();
      update({ phase: "no-session" });
    } else updateOpen(key, () => ({ phase: "failed", problem: problemOf(error) }));
  }
}

/** Tells a screen reader what a person must know. */
function say(name: string, data: any) {
  if (name === "turn") update({ said: data.state === "started" ? "Dragoman is answering." : "Dragoman has finished." });
  else if (name === "ask") update({ said: data.type === "approval" ? `Approval needed. ${data.text}` : `Question: ${data.text}` });
}

export const goTo = (key: string | undefined) => {
  location.hash = key === undefined ? "" : `#/chat/${key}`;
};

/** In one of the folders of a server, or in the folder of this process. */
export async function newChat(folder?: string) {
  const chat = await attempt(() => call<Chat>("POST", "/chats", folder === undefined ? {} : { folder }));
  if (chat === undefined) return;
  goTo(chat.key);
  await readList();
}

/** False where it was not accepted. */
export async function prompt(key: string, text: string, settings: { model?: string; behavior?: string }): Promise<boolean> {
  const accepted = await attempt(() => call("POST", `/chats/${key}/prompt`, { text, ...settings }));
  return accepted !== undefined;
}

export async function steer(key: string, text: string | null): Promise<boolean> {
  const done = await attempt(() => call("POST", `/chats/${key}/steer`, { text }));
  if (done !== undefined) updateOpen(key, () => ({ steering: text ?? "" }));
  return done !== undefined;
}

export const stop = (key: string) => attempt(() => call("POST", `/chats/${key}/stop`, {}));

export async function answer(key: string, ask: string, given: Answer) {
  const settled = await attempt(() => call<{ answer: Answer; isFirst: boolean }>("POST", `/chats/${key}/asks/${ask}`, given));
  if (settled !== undefined && !settled.isFirst) tell(`Another window was first: ${answerText(settled.answer)}.`);
}

export function answerText(given: Answer): string {
  if (given.type === "allow") return given.remember ? "allowed for this chat" : "allowed";
  if (given.type === "deny") return given.remember ? "denied for this chat" : "denied";
  if (given.type === "text") return `“${given.text}”`;
  return given.type === "form" ? "the form was sent" : "nobody answered";
}

export async function fork(key: string, until?: string) {
  const made = await attempt(() => call<{ key: string }>("POST", `/chats/${key}/fork`, until === undefined ? {} : { until }));
  if (made === undefined) return;
  goTo(made.key);
  tell("This is the new chat. The other one stays as it is.");
  await readList();
}

export async function rollBack(key: string, from: string, scope: "messages" | "files" | "both") {
  const done = await attempt(() => call("POST", `/chats/${key}/rollback`, { from, scope }));
  if (done !== undefined) tell(scope === "messages" ? "The messages were dropped." : "The files were put back.");
}

export async function rename(key: string, title: string) {
  const chat = await attempt(() => call<Chat>("PUT", `/chats/${key}/settings`, { title }));
  if (chat === undefined) return;
  updateOpen(key, () => ({ chat }));
  await readList();
}

export function setTheme(theme: Theme) {
  update({ theme });
  void attempt(() => call("PUT", "/preferences", { theme }));
}
