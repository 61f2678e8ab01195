// What the process tells the page: docs/protocols/studio.md.
import type { Problem } from "../../../web/common/problem";

export interface State {
  version: string;
  cli: Cli;
  tabs: Tab[];
  closed: ClosedTab[];
  connections: Connection[];
  plugins: Plugin[];
  toolCalls: ToolCall[];
  preferences: Preferences;
}

export interface ClosedTab {
  id: string;
  title: string;
  closedAt: number;
}

export type Theme = "light" | "dark" | "auto";

export interface Preferences {
  chatWidth: number;
  theme: Theme;
  /** The tab that was shown last. */
  activeTab: string | null;
}

export interface Cli {
  state: "starting" | "running" | "restarting" | "stopped" | "failed";
  pid: number | null;
  restarts: number;
  pending: number;
  message: string | null;
}

export interface Tab {
  id: string;
  title: string;
  state: "empty" | "spec-loaded" | "generating" | "interface-ready" | "customizing" | "error";
  specification: Specification | null;
  current: number | null;
  lastSafe: number | null;
  versions: number;
  baseUrl: BaseUrl | null;
  connection: string | null;
  chat: Message[];
  hasWork: boolean;
  /** Tools of the shown version that are not there any more. */
  missingTools: string[];
  problem: Problem | null;
}

export interface Specification {
  name: string;
  source: "file" | "url" | "text";
  format: "openapi3" | "swagger2" | "graphql";
  title: string;
  version: string;
  operations: number;
  size: number;
  warnings: SpecificationProblem[];
  missing?: Missing[];
  servers: { url: string; description?: string }[];
  schemes: Scheme[];
}

export interface SpecificationProblem {
  severity: "error" | "warning";
  kind: string;
  place: string;
  message: string;
  advice: string;
}

/** A document that a specification refers to and that could not be loaded. */
export interface Missing {
  location: string;
  reason: string;
}

export interface Scheme {
  name: string;
  kind: "apiKey" | "bearer" | "basic" | "oauth2" | "unsupported";
  description: string | null;
  in: Place | null;
  parameter: string | null;
  authorizationUrl: string | null;
  tokenUrl: string | null;
  scopes: { name: string; description: string }[];
}

export type Place = "header" | "query" | "cookie";

export interface BaseUrl {
  url: string;
  isConfirmed: boolean;
  from: "specification" | "user";
  isPrivate: boolean;
}

export interface Message {
  id: string;
  role: "user" | "assistant";
  time: number;
  text: string;
  status: "sent" | "pending" | "queued" | "error";
  options: string[];
  isQuestion: boolean;
  answered: string | null;
  assumptions: string[];
  version: number | null;
  problem: Problem | null;
  /** Of an answer: the message it is about. */
  replyTo?: string | null;
}

export interface Version {
  number: number;
  parent: number | null;
  kind: "generation" | "customization" | "rollback";
  description: string;
  prompt: string | null;
  assumptions: string[];
  hash: string;
  size: number;
  time: number;
  revertedFrom: number | null;
  plugins: string[];
  missingPlugins: string[];
}

export interface Connection {
  key: string;
  kind: "none" | "apiKey" | "bearer" | "basic" | "oauth2";
  state: "disconnected" | "connecting" | "connected" | "degraded" | "expired" | "unreachable";
  message: string | null;
  responseTime: number | null;
  checkedAt: number | null;
  expiresAt: number | null;
  kept: "memory" | "file";
  tabs: string[];
  parameter: string | null;
  in: Place | null;
}

export interface Plugin {
  name: string;
  version: string | null;
  state: "installing" | "installed" | "error" | "uninstalling";
  message: string | null;
  tools: string[];
  usedBy: { tab: string; title: string }[];
}

export interface ConsoleEntry {
  id: number;
  time: number;
  tab: string | null;
  kind: "api" | "cli" | "frame" | "studio";
  level: "info" | "warning" | "error";
  message: string;
  method?: string;
  url?: string;
  requestHeaders?: [string, string][];
  requestBody?: string | null;
  status?: number | null;
  responseHeaders?: [string, string][];
  responseBody?: string | null;
  size?: number;
  duration?: number;
}

export interface Progress {
  tab: string;
  phase: "reading" | "generating" | "customizing" | "checking";
  chunk: string | null;
  received: number;
}

/** A call that waits for a click. */
export interface ToolCall {
  id: string;
  tab: string;
  plugin: string;
  tool: string;
  arguments: unknown;
  /** Why, in the model's words. */
  reason: string;
}

export interface Diff {
  hunks: { left: number; right: number; lines: DiffLine[] }[];
  added: number;
  removed: number;
  isCut?: boolean;
}

export interface DiffLine {
  kind: "same" | "removed" | "added";
  text: string;
}

export type NetworkBody = { text: string } | { base64: string };

export type NetworkAnswer =
  | { status: number; ok: boolean; headers: [string, string][]; body: NetworkBody; duration: number }
  | { error: { kind: string; message: string } };

/** What a specification is given as. */
export type Given = (
  | { source: "file"; name: string; text: string }
  | { source: "url"; url: string }
  | { source: "text"; text: string }
  | { source: "again"; fetchReferences?: true }
) & { documents?: Record<string, string>; allowPrivate?: true; wish?: string };
