// Calls of the process that serves a page, and its streams of events. Owns the page's secret; knows nothing of what is shown.
import { CallError } from "./problem";
import type { Problem } from "./problem";

export type WhenEvent = (name: string, data: unknown) => void;

interface ProcessOptions {
  /** The name of the secret in the storage of the browser tab. */
  secretName: string;
  /** The path of all calls. */
  base: string;
  /** The process in a sentence, and the command that starts it. */
  subject: string;
  command: string;
  /** Events that come together are drawn one after the other: progress is seen, however fast it is. */
  drawsEach: boolean;
}

/** The process behind a page. */
export function processOf({ secretName, base, subject, command, drawsEach }: ProcessOptions) {
  let secret = "";

  const problemOf = (error: unknown): Problem =>
    error instanceof CallError
      ? error.problem
      : { kind: "unavailable", message: `${subject} does not answer.`, hint: `Look whether \`${command}\` still runs.` };

  const fallback = (status: number): Problem => ({ kind: "internal", message: `${subject} answered ${status}.` });

  /** Shows a token. Gives what went wrong. */
  async function logIn(token: string): Promise<Problem | undefined> {
    const response = await fetch("/session", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ token }),
    });
    const answer = await response.json().catch(() => ({}));
    if (!response.ok) return (answer.error as Problem | undefined) ?? fallback(response.status);
    secret = String(answer.secret);
    sessionStorage.setItem(secretName, secret);
    return undefined;
  }

  /** Takes the one-time token out of the address, or the secret of this browser tab. False where there is neither. */
  async function openSession(): Promise<boolean> {
    const token = /^#token=(.+)$/.exec(location.hash)?.[1];
    if (token !== undefined) {
      history.replaceState(null, "", location.pathname);
      if ((await logIn(token)) === undefined) return true;
    }
    secret = sessionStorage.getItem(secretName) ?? "";
    return secret !== "";
  }

  function forgetSession() {
    sessionStorage.removeItem(secretName);
  }

  async function logOut() {
    await fetch("/session", { method: "DELETE", headers: { "X-Dragoman-Page": secret } }).catch(() => undefined);
    forgetSession();
    location.reload();
  }

  /** The answer to one call. Rejects with a `CallError` where the process refuses it. */
  async function respond(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<Response> {
    const headers: Record<string, string> = { "X-Dragoman-Page": secret };
    if (body !== undefined) headers["Content-Type"] = "application/json";
    const response = await fetch(`${base}${path}`, {
      method,
      headers,
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    if (response.ok) return response;
    const answer = await response.json().catch(() => ({}));
    throw new CallError(response.status, (answer.error as Problem | undefined) ?? fallback(response.status));
  }

  /** The JSON of the answer to one call. */
  async function call<T>(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<T> {
    const response = await respond(method, path, body, signal);
    const text = await response.text();
    return (text === "" ? {} : JSON.parse(text)) as T;
  }

  /** A call whose answer comes in events: each goes to `whenEvent` until the answer ends. */
  async function callInParts(path: string, body: unknown, whenEvent: WhenEvent, signal: AbortSignal): Promise<void> {
    const response = await respond("POST", path, body, signal);
    await readStream(response, whenEvent);
  }

  /**
   * Reads the events until `signal` ends it, again after each loss. `whenEvent` gets each event, `whenLink` whether the
   * process is reachable; it rejects where the process refuses it.
   */
  async function readEvents(path: string, whenEvent: WhenEvent, whenLink: (isUp: boolean) => void, signal: AbortSignal): Promise<void> {
    let wait = 250;
    while (!signal.aborted) {
      try {
        const response = await respond("GET", path, undefined, signal);
        whenLink(true);
        wait = 250;
        await readStream(response, (name, data) => signal.aborted || whenEvent(name, data));
      } catch (error) {
        // 429: the process has too much to do for now.
        if (error instanceof CallError && error.status < 500 && error.status !== 429) throw error;
      }
      if (signal.aborted) return;
      whenLink(false);
      await new Promise((done) => setTimeout(done, wait));
      wait = Math.min(wait * 2, 5000);
    }
  }

  async function readStream(response: Response, whenEvent: WhenEvent) {
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    const decoder = new TextDecoder();
    let rest = "";
    for (let part = await reader.read(); !part.done; part = await reader.read()) {
      rest += decoder.decode(part.value, { stream: true });
      const blocks = rest.split("\n\n");
      rest = blocks.pop() ?? "";
      for (const block of blocks) {
        readBlock(block, whenEvent);
        if (drawsEach && blocks.length > 1) await nextTask();
      }
    }
  }

  return { problemOf, logIn, openSession, forgetSession, logOut, respond, call, callInParts, readEvents };
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

function readBlock(block: string, whenEvent: WhenEvent) {
  let name = "message";
  const data: string[] = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) name = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /, ""));
  }
  if (data.length > 0) whenEvent(name, JSON.parse(data.join("\n")));
}
