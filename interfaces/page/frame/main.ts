// Runs inside the frame, before the interface. It takes the code from the page, shows it with React from the page's
// bundle, sends its requests through the page, and tells the page what the browser refused.
// The interface shares this world: nothing here is a secret, and nothing here is what keeps the interface in. The frame's
// sandbox, its policy and the checks of the page and of the process do that.
import { FROM_FRAME, TO_FRAME, envelopeOf } from "./protocol";
import type { Envelope, FromFrame, ToFrame } from "./protocol";
import { createRoot, react, runtime } from "./react";
import { makeRequest, settle } from "./request";
import { watchRefusals } from "./refusals";

type Component = (props: object) => unknown;

const host = window.parent;
/** The nonce of the document's policy, for the style sheets and the script of the interface. */
const policyNonce = (document.currentScript as HTMLScriptElement | null)?.nonce ?? "";

let nonce: string | undefined;
let theme = "light";
let route = "";
let routes: string[] = [];
let memory: Record<string, string> = {};
/** Another text after each sign-in: the interface then loads again what failed. */
let session = "";
let App: Component | undefined;
let root: ReturnType<typeof createRoot> | undefined;
let isComplete = false;
let isStarted = false;
let code = "";

export function send(type: FromFrame, payload: Record<string, unknown>, requestId?: string) {
  if (nonce === undefined || !FROM_FRAME.includes(type)) return;
  host.postMessage({ type, payload, nonce, timestamp: Date.now(), requestId }, "*");
}

const textOf = (error: unknown) => (error instanceof Error ? `${error.name}: ${error.message}` : String(error));

/** The properties that generated modules expect of their host (docs/protocols/copilot.md). */
function properties() {
  return {
    request: makeRequest(send),
    session,
    route,
    whenRouted: (next: string, isReplacing: boolean) => {
      if (!isReplacing) routes.push(route);
      route = String(next);
      send("UI_EVENT", { name: "route", route });
      show();
    },
    whenLeft: () => {
      route = routes.pop() ?? "";
      send("UI_EVENT", { name: "route", route });
      show();
    },
    recall: (name: string) => (Object.hasOwn(memory, name) ? memory[name] : undefined),
    remember: (name: string, text?: string) => {
      if (text === undefined) delete memory[name];
      else memory = { ...memory, [name]: String(text) };
      send("UI_EVENT", { name: "remember", memory });
    },
    saveFile: (content: unknown, name: string, contentType: string) => {
      const blob = content instanceof Blob ? content : new Blob([String(content)], { type: String(contentType) });
      send("UI_EVENT", { name: "save", blob, file: String(name) });
    },
    showImage: (content: unknown, contentType: string) => react.createElement(Picture, { content, contentType }),
    copyText: (text: string) => send("UI_EVENT", { name: "copy", text: String(text) }),
  };
}

/** An image of the API; as an image it runs nothing. */
function Picture({ content, contentType }: { content: unknown; contentType: string }) {
  const blob = content instanceof Blob ? content : new Blob([String(content)], { type: contentType });
  const [address, setAddress] = react.useState<string>();
  react.useEffect(() => {
    const made = URL.createObjectURL(blob);
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [content]);
  return address === undefined
    ? null
    : react.createElement("img", { src: address, alt: "The image of the answer", style: { maxWidth: "100%" } });
}

function show() {
  if (App === undefined || root === undefined) return;
  root.render(react.createElement(App, { ...properties(), stamp: `${theme} ${route}` }));
}

/** Style sheets need the policy's nonce, and an interface without a theme of its own follows the page's. */
function fitting(type: unknown, props: Record<string, unknown>): Record<string, unknown> {
  if (type === "style") return { ...props, nonce: policyNonce };
  if (type === "div" && props.className === "dragoman dragoman-auto")
    return { ...props, className: `dragoman dragoman-${theme}` };
  return props;
}

function tellComplete() {
  if (isComplete) return;
  isComplete = true;
  // After the first picture was drawn; a frame that is not visible draws none, and is complete all the same.
  const since = Date.now();
  const tell = () => send("RENDER_COMPLETE", { elements: document.getElementsByTagName("*").length, took: Date.now() - since });
  setTimeout(tell, 0);
}

/** The compiled module calls this at its end. */
function mount(Interface: Component, element: Element) {
  const fail = (error: unknown) => send("ERROR", { message: textOf(error), isFatal: true });
  root = createRoot(element, { onUncaughtError: fail, onRecoverableError: () => {} });
  App = function Shown(props: object) {
    react.useEffect(tellComplete, []);
    return react.createElement(Interface, props);
  };
  show();
}

type Make = (type: unknown, props: Record<string, unknown>, ...rest: unknown[]) => unknown;

function start(code: string) {
  isStarted = true;
  const fitted = (make: Make): Make => (type, props, ...rest) => make(type, fitting(type, props ?? {}), ...rest);
  const given = {
    react: { ...react, createElement: fitted(react.createElement) },
    runtime: { ...runtime, jsx: fitted(runtime.jsx), jsxs: fitted(runtime.jsxs) },
    mount,
  };
  Object.defineProperty(globalThis, "dragomanReact", { value: Object.freeze(given) });
  const script = Object.assign(document.createElement("script"), { type: "module", nonce: policyNonce });
  script.textContent = code;
  document.body.append(script);
}

function take(message: Envelope) {
  const { payload } = message;
  switch (message.type as ToFrame) {
    case "RENDER_DATA":
      if (typeof payload.route === "string") route = payload.route;
      if (typeof payload.session === "string") session = payload.session;
      if (payload.memory !== null && typeof payload.memory === "object")
        memory = { ...(payload.memory as Record<string, string>) };
      if (isStarted) show();
      else start(code);
      break;
    case "THEME_CHANGE":
      setTheme(payload.theme);
      show();
      break;
    case "RESIZE":
      document.documentElement.style.setProperty("--frame-width", `${Number(payload.width) || 0}px`);
      break;
    case "NETWORK_RESPONSE":
      settle(message.requestId ?? "", payload);
      break;
    case "DESTROY":
      root?.unmount();
      root = undefined;
      nonce = undefined;
      break;
  }
}


function setTheme(given: unknown) {
  theme = given === "dark" ? "dark" : "light";
  document.documentElement.style.colorScheme = theme;
}

addEventListener("message", (event) => {
  if (event.source !== host) return;
  const message = envelopeOf(event.data);
  if (message === undefined || !(TO_FRAME as readonly string[]).includes(message.type)) return;
  if (message.type === "INIT") {
    if (nonce !== undefined) return;
    nonce = message.nonce;
    code = String(message.payload.code ?? "");
    setTheme(message.payload.theme);
    watchRefusals(send);
    send("READY", {});
    // The page notices when the interface keeps this document busy.
    setInterval(() => send("UI_EVENT", { name: "alive" }), 1000);
    return;
  }
  if (message.nonce === nonce) take(message);
});

// The keys of the interface work before anything in it was pressed.
addEventListener("keydown", (event) => {
  const isFree = event.target === document.body || event.target === document.documentElement;
  if (!isFree || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
  event.preventDefault();
  const { key, ctrlKey, metaKey } = event;
  const copy = new KeyboardEvent("keydown", { key, ctrlKey, metaKey, bubbles: true, cancelable: true });
  document.querySelector(".dragoman")?.dispatchEvent(copy);
});

addEventListener("error", (event) => {
  const isRefusal = event.error instanceof DOMException && event.error.name === "SecurityError";
  if (isRefusal) send("LOG", { level: "blocked", message: event.error.message });
  else send("ERROR", { message: event.error === undefined ? event.message : textOf(event.error), isFatal: App === undefined });
});
addEventListener("unhandledrejection", (event) => send("ERROR", { message: textOf(event.reason), isFatal: false }));
