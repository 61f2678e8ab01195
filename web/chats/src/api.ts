// Calls of the process and its streams of events. Owns the page's secret; knows nothing of what is shown.
import type { Problem } from "./types";

const SECRET = "dragoman-chats-secret";

/** A call that failed, with what the process said about it. */
export class CallError extends Error {
  readonly status: number;
  readonly problem: Problem;

  constructor(status: number, problem: Problem) {
    super(problem.message);
    this.status = status;
    this.problem = problem;
  }
}

export const problemOf = (error: unknown): Problem =>
  error instanceof CallError
    ? error.problem
    : { kind: "unavailable", message: "Dragoman does not answer.", hint: "Look whether `dragoman serve` still runs." };

let secret = "";

/** Takes the one-time token out of the address, or the secret of this browser tab. False where there is neither. */
export async function openSession(): Promise<boolean> {
  const token = /^#token=(.+)$/.exec(location.hash)?.[1];
  if (token !== undefined) {
    history.replaceState(null, "", location.pathname);
    const response = await fetch("/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    if (response.ok) {
      secret = String((await response.json()).secret);
      sessionStorage.setItem(SECRET, secret);
      return true;
    }
  }
  secret = sessionStorage.getItem(SECRET) ?? "";
  return secret !== "";
}

/** The page of a server for other machines asks for a token; on this machine a link brings it. */
export const isServer = () => location.protocol === "https:";

/** Shows the token of an account. Gives what went wrong. */
export async function logIn(token: string): Promise<Problem | undefined> {
  const response = await fetch("/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ token }) });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok) return (answer.error as Problem | undefined) ?? { kind: "internal", message: `Dragoman answered ${response.status}.` };
  secret = String(answer.secret);
  sessionStorage.setItem(SECRET, secret);
  return undefined;
}

export async function logOut() {
  await fetch("/session", { method: "DELETE", headers: { "X-Dragoman-Page": secret } }).catch(() => undefined);
  forgetSession();
  location.reload();
}

export function forgetSession() {
  sessionStorage.removeItem(SECRET);
}

async function respond(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { "X-Dragoman-Page": secret };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(`/api/v1${path}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  });
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  const fallback = { kind: "internal", message: `Dragoman answered ${response.status}.` };
  throw new CallError(response.status, (answer.error as Problem | undefined) ?? fallback);
}

/** One call below /api/v1. Rejects with a `CallError` where the process refuses it. */
export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await respond(method, path, body, signal);
  const text = await response.text();
  return (text === "" ? {} : JSON.parse(text)) as T;
}

/**
 * Reads the events of a chat until `signal` ends it, again after each loss: a stream begins with the whole chat. Rejects where
 * the process refuses it.
 */
export async function readEvents(path: string, whenEvent: (name: string, data: unknown) => void, whenLink: (isUp: boolean) => void, signal: AbortSignal): Promise<void> {
  let wait = 250;
  while (!signal.aborted) {
    try {
      const response = await respond("GET", path, undefined, signal);
      whenLink(true);
      wait = 250;
      await readStream(response.body as ReadableStream<Uint8Array>, (name, data) => signal.aborted || whenEvent(name, data));
    } catch (error) {
      if (error instanceof CallError && error.status < 500) throw error;
    }
    if (signal.aborted) return;
    whenLink(false);
    await new Promise((done) => setTimeout(done, wait));
    wait = Math.min(wait * 2, 5000);
  }
}

async function readStream(stream: ReadableStream<Uint8Array>, whenEvent: (name: string, data: unknown) => void) {
  const reader = stream.getReader();
  const decoder = new TextDecoder();
  let rest = "";
  for (let part = await reader.read(); !part.done; part = await reader.read()) {
    rest += decoder.decode(part.value, { stream: true });
    const blocks = rest.split("\n\n");
    rest = blocks.pop() ?? "";
    for (const block of blocks) readBlock(block, whenEvent);
  }
}

function readBlock(block: string, whenEvent: (name: string, data: unknown) => void) {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  if (data.length > 0) whenEvent(name, JSON.parse(data.join("\n")));
}
