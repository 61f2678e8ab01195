// One frame with one interface: its life from the document to DESTROY, and the only door for its messages.
//
// A message passes where it comes from this very frame, has the envelope, the nonce of this frame's session and a type that
// is allowed. Everything else is ignored and told to the console.
import { FROM_FRAME, envelopeOf } from "../frame/protocol";
import type { Envelope, FromFrame, NetworkRequest, NetworkResponse, ToFrame } from "../frame/protocol";

export type LogKind = "log" | "blocked" | "error";

export interface FrameListener {
  whenRendered(): void;
  /** The interface cannot be shown; the frame is gone. */
  whenFailed(message: string): void;
  whenLogged(kind: LogKind, message: string): void;
  whenRouted(route: string): void;
  whenRemembered(memory: Record<string, string>): void;
  /** `whenPart` takes an answer that comes in parts, where the request asks for that; the end has none of them. */
  request(request: NetworkRequest, whenPart: (text: string) => void, signal: AbortSignal): Promise<NetworkResponse>;
  save(blob: Blob, name: string): void;
  copy(text: string): void;
}

export interface FrameStart {
  address: string;
  script: string;
  theme: "light" | "dark";
  route: string;
  memory: Record<string, string>;
  title: string;
}

/** How long the interface may take to be shown, and a request to be answered. */
const RENDER_DEADLINE = 30_000;
const REQUEST_DEADLINE = 10_000;
/** A frame that says nothing for so long is stopped. */
const SILENCE = 8000;
const MOST_REQUESTS = 50;
const MOST_LOGS = 50;

export class FrameHost {
  readonly element: HTMLIFrameElement;
  private readonly nonce = makeNonce();
  private readonly start: FrameStart;
  private readonly listener: FrameListener;
  private phase: "loading" | "started" | "ready" | "shown" | "gone" = "loading";
  private deadline = 0;
  private lastSign = Date.now();
  private lastTick = Date.now();
  private readonly watch: number;
  private readonly running = new Map<string, AbortController>();
  private logs = 0;

  constructor(start: FrameStart, listener: FrameListener) {
    this.start = start;
    this.listener = listener;
    this.element = document.createElement("iframe");
    this.element.setAttribute("sandbox", "allow-scripts");
    this.element.setAttribute("referrerpolicy", "no-referrer");
    this.element.setAttribute("allow", "");
    this.element.title = start.title;
    this.element.className = "frame";
    this.element.src = start.address;
    this.element.addEventListener("load", this.whenLoaded);
    addEventListener("message", this.whenMessage);
    document.addEventListener("securitypolicyviolation", this.whenViolated);
    this.deadline = window.setTimeout(() => this.fail("The interface was not shown within 30 seconds."), RENDER_DEADLINE);
    this.watch = window.setInterval(this.lookForSigns, 1000);
  }

  setTheme(theme: "light" | "dark") {
    this.send("THEME_CHANGE", { theme });
  }

  resize(width: number, height: number) {
    this.send("RESIZE", { width, height });
  }

  /** Somebody signed in again: the interface loads again what failed. */
  renew(session: string) {
    if (this.phase === "ready" || this.phase === "shown") this.send("RENDER_DATA", { session });
  }

  /** A frame that was hidden is not judged by its silence. */
  wake() {
    this.lastSign = Date.now();
  }

  destroy() {
    if (this.phase === "gone") return;
    this.send("DESTROY", {});
    this.phase = "gone";
    clearTimeout(this.deadline);
    clearInterval(this.watch);
    for (const controller of this.running.values()) controller.abort();
    removeEventListener("message", this.whenMessage);
    document.removeEventListener("securitypolicyviolation", this.whenViolated);
    // The interface gets a moment to end; a frame that hangs is removed all the same.
    this.element.hidden = true;
    setTimeout(() => this.element.remove(), 50);
  }

  private fail(message: string) {
    if (this.phase === "gone") return;
    this.destroy();
    this.listener.whenFailed(message);
  }

  private send(type: ToFrame, payload: Record<string, unknown>, requestId?: string) {
    if (this.phase === "gone" || (this.phase === "loading" && type !== "INIT")) return;
    const message = { type, payload, nonce: this.nonce, timestamp: Date.now(), requestId };
    // The frame has no origin that could be named; the policy of this page keeps every other document out of it.
    this.element.contentWindow?.postMessage(message, "*");
  }

  private readonly whenLoaded = () => {
    if (this.phase === "loading") {
      this.send("INIT", { code: this.start.script, theme: this.start.theme });
      this.phase = "started";
      return;
    }
    this.log("blocked", "The interface left its document. The frame was stopped.");
    this.fail("The interface tried to leave its page.");
  };

  private readonly whenViolated = (event: SecurityPolicyViolationEvent) => {
    // The event does not say which frame it was: the one that is seen tells it.
    if (event.effectiveDirective !== "frame-src" || this.element.hidden) return;
    this.log("blocked", `The page's policy refused to load ${event.blockedURI} into a frame.`);
  };

  private readonly whenMessage = (event: MessageEvent) => {
    if (event.source !== this.element.contentWindow || event.source === null) return;
    this.lastSign = Date.now();
    const message = envelopeOf(event.data);
    if (message === undefined || event.origin !== "null") {
      this.log("blocked", "The frame sent a message without the agreed envelope. It was ignored.");
      return;
    }
    if (!(FROM_FRAME as readonly string[]).includes(message.type)) {
      this.log("blocked", `The frame sent a message of the unknown type “${message.type}”. It was ignored.`);
      return;
    }
    if (message.nonce !== this.nonce) {
      this.log("blocked", `The frame sent ${message.type} with a wrong nonce.`);
      if (message.type === "READY") this.fail("The frame did not prove that it is the one that was started.");
      return;
    }
    this.take(message.type as FromFrame, message);
  };

  private take(type: FromFrame, message: Envelope) {
    const { payload } = message;
    switch (type) {
      case "READY":
        if (this.phase !== "started") return;
        this.phase = "ready";
        this.send("RENDER_DATA", { route: this.start.route, memory: this.start.memory });
        return;
      case "RENDER_COMPLETE":
        if (this.phase !== "ready") return;
        this.phase = "shown";
        clearTimeout(this.deadline);
        this.listener.whenRendered();
        return;
      case "NETWORK_REQUEST":
        void this.answer(message);
        return;
      case "LOG":
        this.log(payload.level === "blocked" ? "blocked" : "log", textOf(payload.message));
        return;
      case "ERROR":
        this.log("error", textOf(payload.message));
        if (payload.isFatal === true) this.fail(textOf(payload.message));
        return;
      case "UI_EVENT":
        this.takeEvent(payload);
    }
  }

  private takeEvent(payload: Record<string, unknown>) {
    if (payload.name === "route") this.listener.whenRouted(textOf(payload.route));
    else if (payload.name === "remember") this.listener.whenRemembered(memoryOf(payload.memory));
    else if (payload.name === "save" || payload.name === "copy") this.takeWish(payload);
    else if (payload.name === "stop") this.running.get(textOf(payload.requestId))?.abort();
    else if (payload.name !== "alive") this.log("blocked", `The frame told an unknown event “${textOf(payload.name)}”.`);
  }

  /** Files are saved and texts copied only after a click: activation of a frame counts for the page around it. */
  private takeWish(payload: Record<string, unknown>) {
    if (!navigator.userActivation.isActive) {
      this.log("blocked", `The interface tried to ${textOf(payload.name)} without a click.`);
      return;
    }
    if (payload.name === "copy") this.listener.copy(textOf(payload.text, 1 << 20));
    else if (payload.blob instanceof Blob) this.listener.save(payload.blob, fileName(payload.file));
  }

  private async answer(message: Envelope) {
    const request = requestOf(message.payload);
    const requestId = message.requestId;
    if (request === undefined || requestId === undefined) {
      this.log("blocked", "The frame sent a request that is not well formed. It was ignored.");
      return;
    }
    if (this.running.size >= MOST_REQUESTS || this.running.has(requestId)) {
      this.send("NETWORK_RESPONSE", { error: "Too many requests run at the same time." }, requestId);
      return;
    }
    const controller = new AbortController();
    this.running.set(requestId, controller);
    // The process limits the time until an answer in parts begins.
    const late = new Promise<NetworkResponse>((resolve) => {
      if (!request.inParts) setTimeout(() => resolve({ error: "There was no answer within 10 seconds." }), REQUEST_DEADLINE);
    });
    const failed = (): NetworkResponse => ({ error: controller.signal.aborted ? "The request was stopped." : "The studio process does not answer." });
    const whenPart = (part: string) => this.send("NETWORK_RESPONSE", { part }, requestId);
    const response = await Promise.race([this.listener.request(request, whenPart, controller.signal).catch(failed), late]);
    this.running.delete(requestId);
    this.send("NETWORK_RESPONSE", { ...response }, requestId);
  }

  private log(kind: LogKind, message: string) {
    this.logs += 1;
    if (this.logs <= MOST_LOGS) this.listener.whenLogged(kind, message);
  }

  /** Each second: a frame that is seen must have said something lately, unless this page itself was asleep. */
  private readonly lookForSigns = () => {
    const now = Date.now();
    this.logs = 0;
    if (now - this.lastTick > 3000 || document.visibilityState !== "visible" || this.element.hidden) this.lastSign = now;
    this.lastTick = now;
    const isWatched = this.phase === "ready" || this.phase === "shown";
    if (!isWatched || now - this.lastSign < SILENCE) return;
    this.log("blocked", "The interface kept its frame busy for 8 seconds. It was stopped.");
    this.fail("The interface did not react for 8 seconds and was stopped.");
  };
}

function makeNonce() {
  return [...crypto.getRandomValues(new Uint8Array(24))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

const textOf = (value: unknown, most = 2000) => (typeof value === "string" ? value.slice(0, most) : "");

function memoryOf(value: unknown): Record<string, string> {
  if (value === null || typeof value !== "object") return {};
  const pairs = Object.entries(value).filter(([, text]) => typeof text === "string" && text.length <= 10_000);
  return Object.fromEntries(pairs.slice(0, 50)) as Record<string, string>;
}

/** A name without a path and without letters that a file system minds. */
function fileName(value: unknown) {
  const name = textOf(value, 120).replace(/[\\/:*?"<>|\u0000-\u001f]/g, "-").replace(/^\.+/, "");
  return name === "" ? "file" : name;
}

function pairsOf(value: unknown): [string, string][] | undefined {
  if (!Array.isArray(value)) return undefined;
  const isPair = (one: unknown) => Array.isArray(one) && one.length === 2 && one.every((text) => typeof text === "string");
  return value.every(isPair) ? (value as [string, string][]) : undefined;
}

function requestOf(payload: Record<string, unknown>): NetworkRequest | undefined {
  const [query, headers] = [pairsOf(payload.query), pairsOf(payload.headers)];
  const { method, path, text, base64, operation, server } = payload;
  if (query === undefined || headers === undefined || typeof method !== "string" || typeof path !== "string") return undefined;
  if (text !== undefined && typeof text !== "string") return undefined;
  if (base64 !== undefined && typeof base64 !== "string") return undefined;
  return { method, path, query, headers, text, base64, operation: textOf(operation), server: Number(server) || 0, inParts: payload.inParts === true };
}
