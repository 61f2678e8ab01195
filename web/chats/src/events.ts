// What the events of a chat do to it. Pure; the process has done the hard parts: texts come once, what was rolled back is gone.
import type { OpenChat } from "./store";
import type { Answer, Ask, CallItem, Chat, Entry, Item, Remark, TextItem, Usage } from "./types";

const OUTCOMES: Record<string, { text: string; tone: Remark["tone"] }> = {
  stopped: { text: "Stopped.", tone: "neutral" },
  maxTokens: { text: "The model reached its output limit.", tone: "warn" },
  maxSteps: { text: "The step limit ended this turn. Write “go on” to continue.", tone: "warn" },
  repeating: { text: "The same call gave the same result again and again, so the turn was ended.", tone: "warn" },
  refused: { text: "The model refused to answer.", tone: "warn" },
  failed: { text: "This turn failed.", tone: "bad" },
  interrupted: { text: "This turn was interrupted: the program that ran it ended.", tone: "warn" },
};

export function begin(key: string): OpenChat {
  return { key, phase: "loading", entries: [], asks: {}, isBusy: false, progress: "", steering: "" };
}

/** The chat after an event. */
export function apply(open: OpenChat, name: string, data: any): OpenChat {
  switch (name) {
    case "snapshot": {
      // A long chat is put together in place: a copy for each of its items would take seconds.
      const first: OpenChat = { ...begin(open.key), phase: "shown", steering: open.steering, building: new Set() };
      const entries = data.entries as { event: string; data: unknown }[];
      const shown = entries.reduce((chat, entry) => apply(chat, entry.event, entry.data), first);
      return withChat({ ...shown, building: undefined }, data.chat as Chat);
    }
    case "chat":
      return withChat(open, data as Chat);
    case "item":
      return withItem(open, data as Item);
    case "grow":
      return { ...open, entries: replace(open.entries, data.item, (item) => grow(item, data.channel, data.text)) };
    case "turn":
      return withTurn(open, data);
    case "ask": {
      const ask = data as Ask;
      return { ...open, asks: { ...open.asks, [ask.ask]: ask } };
    }
    case "settled": {
      const ask = open.asks[data.ask];
      return ask === undefined ? open : { ...open, asks: { ...open.asks, [ask.ask]: { ...ask, answer: data.answer as Answer } } };
    }
    case "usage":
      return { ...open, usage: data as Usage };
    case "progress":
      return { ...open, progress: String(data.text) };
    case "notice": {
      const tone = data.level === "error" ? "bad" : data.level === "warning" ? "warn" : "neutral";
      return remark(open, { type: "notice", id: `notice-${data.number}`, tone, text: data.text });
    }
    case "lost":
      return remark({ ...open, isBusy: false }, { type: "notice", id: `lost-${open.entries.length}`, tone: "bad", text: [data.message, data.hint].filter(Boolean).join(" ") });
    default:
      return open;
  }
}

const withChat = (open: OpenChat, chat: Chat): OpenChat => ({ ...open, chat, isBusy: chat.isBusy, usage: open.usage ?? chat.usage, progress: chat.isBusy ? open.progress : "", steering: chat.isBusy ? open.steering : "" });

function withTurn(open: OpenChat, data: { turn: string; state: "started" | "ended"; outcome?: string; message?: string | null }): OpenChat {
  if (data.state === "started") return { ...open, isBusy: true };
  const ended = { ...open, isBusy: false, progress: "", steering: "" };
  const outcome = data.outcome === undefined ? undefined : OUTCOMES[data.outcome];
  if (outcome === undefined) return ended;
  const text = data.message === null || data.message === undefined ? outcome.text : `${outcome.text} ${data.message}`;
  return remark(ended, { type: "outcome", id: `${data.turn}-outcome`, tone: outcome.tone, text });
}

function withItem(open: OpenChat, item: Item): OpenChat {
  if (item.type !== "flag" && append(open, item.item, item)) return open;
  const at = open.entries.findIndex((entry) => "item" in entry && entry.item === item.item);
  const entries = [...open.entries];
  if (item.type === "flag" && item.text === "") {
    if (at >= 0) entries.splice(at, 1);
    return { ...open, entries };
  }
  if (at >= 0) entries[at] = item;
  else if (item.type === "flag" && item.parent !== null) {
    const parent = entries.findIndex((entry) => "item" in entry && entry.item === item.parent);
    entries.splice(parent < 0 ? entries.length : parent + 1, 0, item);
  } else entries.push(item);
  // What was sent to the running turn is read now.
  const steering = item.type === "user" && at < 0 ? "" : open.steering;
  return { ...open, entries, steering };
}

/** Adds a new entry in place while the chat is put together; false where it has to be done the usual way. */
function append({ building, entries }: OpenChat, id: string, entry: Entry): boolean {
  if (building === undefined || building.has(id)) return false;
  building.add(id);
  entries.push(entry);
  return true;
}

function remark(open: OpenChat, made: Remark): OpenChat {
  if (append(open, made.id, made)) return open;
  if (open.entries.some((entry) => "id" in entry && entry.id === made.id)) return open;
  return { ...open, entries: [...open.entries, made] };
}

function replace(entries: Entry[], item: string, change: (item: Item) => Item): Entry[] {
  const at = entries.findLastIndex((entry) => "item" in entry && entry.item === item);
  const found = entries[at];
  if (found === undefined || !("item" in found)) return entries;
  const changed = [...entries];
  changed[at] = change(found);
  return changed;
}

function grow(item: Item, channel: string, text: string): Item {
  if (item.type === "call") {
    const call: CallItem = { ...item };
    if (channel === "input") call.inputText += text;
    else call.output += text;
    return call;
  }
  return { ...(item as TextItem), text: (item as TextItem).text + text };
}
