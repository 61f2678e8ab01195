// What the process says (docs/protocols/serve.md).

export type Theme = "auto" | "light" | "dark";

export interface About {
  version: string;
  folders: string[];
  catalog: { models: string[]; behaviors: string[]; defaultModel: string | null; defaultBehavior: string; notices: { level: string; text: string }[] };
  theme: Theme;
  /** On a server: whose page this is. */
  account?: { name: string; role: "view" | "drive" | "admin"; budgetUsd: number | null; spentUsd: number };
  /** On a server: what everybody must know. */
  sharing?: string;
}

export interface Summary {
  key: string;
  id: string;
  title: string | null;
  folders: string[];
  model: string | null;
  parent: string | null;
  messages: number;
  createdAt: number;
  updatedAt: number;
  excerpt: string | null;
  running?: { state: "idle" | "answering" | "waiting"; waitsFor: string | null; holder: string; costUsd: number | null };
}

export interface Usage {
  costUsd: number | null;
  lastCostUsd: number | null;
  contextTokens: number;
  contextLimit: number | null;
  inputTokens: number;
  cachedTokens: number;
  outputTokens: number;
  spent: { purpose: string; model: string; calls: number; inputTokens: number; outputTokens: number; costUsd: number | null }[];
}

export interface Chat {
  key: string;
  id: string;
  title: string | null;
  folders: string[];
  model: string | null;
  behavior: string | null;
  isBusy: boolean;
  attachedTo: string | null;
  heldBy: string | null;
  usage: Usage;
  createdAt: number;
  updatedAt: number;
}

export interface Task {
  text: string;
  status: "pending" | "inProgress" | "done";
  priority: string | null;
}

export type Details =
  | { type: "file"; path: string; diff: string; added: number; removed: number }
  | { type: "shell"; commands: string[] }
  | { type: "tasks"; tasks: Task[] }
  | { type: "json"; texts: string[] }
  | { type: "subagent"; chat: string; name: string; model: string; step: number; maxSteps: number };

interface ItemBase {
  item: string;
  turn: string;
  parent: string | null;
  at: number;
  isOpen: boolean;
}

export interface TextItem extends ItemBase {
  type: "user" | "agent" | "reasoning" | "compaction" | "command" | "system" | "flag";
  text: string;
  images?: number;
  isCut?: boolean;
  millis?: number;
}

export interface CallItem extends ItemBase {
  type: "call";
  name: string;
  server: string | null;
  state: "preparing" | "waiting" | "running" | "done" | "rejected" | "stopped" | "unknown";
  rejectedBy: "user" | "policy" | "hook" | "unasked" | null;
  summary: string;
  input: unknown;
  inputText: string;
  output: string;
  result: string;
  isError: boolean;
  millis: number;
  details: Details | null;
}

export interface CitationItem extends ItemBase {
  type: "citation";
  title: string;
  url: string;
}

export interface HookItem extends ItemBase {
  type: "hook";
  name: string;
  status: number | null;
  text: string;
}

export type Item = TextItem | CallItem | CitationItem | HookItem;

/** What stands between the items. */
export interface Remark {
  type: "notice" | "outcome";
  id: string;
  tone: "neutral" | "warn" | "bad";
  text: string;
}

export type Entry = Item | Remark;

export type Answer =
  | { type: "allow"; remember: boolean }
  | { type: "deny"; remember: boolean; reason?: string | null }
  | { type: "text"; text: string }
  | { type: "form"; data: Record<string, unknown> }
  | { type: "cancelled" };

export interface Ask {
  ask: string;
  item: string | null;
  type: "approval" | "question" | "form";
  text: string;
  remembers?: string[];
  options?: { label: string; description: string | null }[];
  isFree?: boolean;
  schema?: unknown;
  answer?: Answer;
}
