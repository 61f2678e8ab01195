// Calls of the process and its stream of events. Owns the page's secret; knows nothing of what is shown.
import type { Problem } from "./types";

const SECRET = "dragoman-studio-secret";

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
    : { kind: "unavailable", message: "The studio process does not answer.", hint: "Look whether `dragoman studio` still runs." };

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

export function forgetSession() {
  sessionStorage.removeItem(SECRET);
}

async function respond(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
  const headers: Record<string, string> = { "X-Dragoman-Page": secret };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const response = await fetch(`/api${path}`, {
    method,
    headers,
    body: body === undefined ? undefined : JSON.stringify(body),
    signal,
  });
  if (response.ok) return response;
  const answer = await response.json().catch(() => ({}));
  const fallback = { kind: "internal", message: `The studio process answered ${response.status}.` };
  throw new CallError(response.status, (answer.error as Problem | undefined) ?? fallback);
}

/** One call below /api. Rejects with a `CallError` where the process refuses it. */
export async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
  const response = await respond(method, path, body, signal);
  const text = await response.text();
  return (text === "" ? {} : JSON.parse(text)) as T;
}

/** A call whose answer comes in events: each goes to `whenEvent` until the answer ends. */
export async function callInParts(path: string, body: unknown, whenEvent: (name: string, data: unknown) => void, signal: AbortSignal): Promise<void> {
  const response = await respond("POST", path, body, signal);
  await readStream(response.body as ReadableStream<Uint8Array>, whenEvent);
}

/** A file that the process makes. */
export async function fetchFile(path: string, body: unknown): Promise<{ blob: Blob; name: string }> {
  const response = await respond("POST", path, body);
  const disposition = response.headers.get("Content-Disposition") ?? "";
  return { blob: await response.blob(), name: /filename="([^"]+)"/.exec(disposition)?.[1] ?? "interface" };
}

/**
 * Reads the events until `signal` ends it, again after each loss. `whenEvent` gets each event, `whenLink` whether the
 * process is reachable; it rejects where the session is not accepted any more.
 */
export async function readEvents(
  whenEvent: (name: string, data: unknown) => void,
  whenLink: (isUp: boolean) => void,
  signal: AbortSignal,
): Promise<void> {
  let wait = 250;
  while (!signal.aborted) {
    try {
      const response = await respond("GET", "/events", undefined, signal);
      whenLink(true);
      wait = 250;
      await readStream(response.body as ReadableStream<Uint8Array>, whenEvent);
    } catch (error) {
      if (error instanceof CallError && (error.status === 401 || error.status === 403)) throw error;
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
    for (const block of blocks) {
      readBlock(block, whenEvent);
      // Events that come together are drawn one after the other: progress is seen, however fast it is.
      if (blocks.length > 1) await nextTask();
    }
  }
}

/** Timers wait in a page that is not seen; messages do not. */
function nextTask() {
  return new Promise<void>((done) => {
    const { port1, port2 } = new MessageChannel();
    port1.onmessage = () => {
      port1.close();
      done();
    };
    port2.postMessage(undefined);
  });
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
