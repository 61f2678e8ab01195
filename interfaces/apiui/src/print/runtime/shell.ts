// What a page does for the interface that it shows: the address of each view, a small memory, and the server that the
// reader chose. The interface itself reaches none of these; it gets them as properties.
import { createElement, useEffect, useState } from "react";
import type { ComponentType } from "react";
import type { Data, FileTools, Flow, HostProps, Request, Values } from "./types";

/** How long a list that is loaded again may take until its scroll position is given up, in milliseconds. */
const SCROLL_DEADLINE = 5000;

const keyOf = (name: string) => `dragoman ${location.pathname} ${name}`;

function recall(name: string) {
  try {
    return localStorage.getItem(keyOf(name)) ?? undefined;
  } catch {
    return undefined;
  }
}

function remember(name: string, text?: string) {
  try {
    if (text === undefined) localStorage.removeItem(keyOf(name));
    else localStorage.setItem(keyOf(name), text);
  } catch {
    // A page without storage forgets.
  }
}

function readRoute() {
  return location.hash.slice(1);
}

/** Scrolls as soon as the page is tall enough, unless the reader scrolls first. */
function restoreScroll(top: number) {
  const end = Date.now() + SCROLL_DEADLINE;
  let isStopped = false;
  const stop = () => {
    isStopped = true;
  };
  for (const name of ["wheel", "touchstart", "keydown"]) addEventListener(name, stop, { once: true, passive: true });
  const step = () => {
    if (isStopped || Date.now() > end) return;
    scrollTo(0, top);
    if (Math.abs(scrollY - top) > 2) setTimeout(step, 50);
  };
  step();
}

function writeRoute(route: string, isReplacing: boolean) {
  const address = `#${route}`;
  if (isReplacing) {
    history.replaceState(history.state, "", address);
    return;
  }
  history.replaceState({ scroll: scrollY }, "");
  history.pushState({ scroll: 0 }, "", address);
  scrollTo(0, 0);
}

/** Asks before the page calls another server: the interface may wish for one, the reader decides. */
function chooseServer(address: string) {
  if (address === "") {
    remember("server", undefined);
    location.reload();
    return;
  }
  let url;
  try {
    url = new URL(address, document.baseURI);
  } catch {
    return;
  }
  if (url.protocol !== "http:" && url.protocol !== "https:") return;
  const chosen = url.href.replace(/[?#].*$/, "");
  if (!confirm(`Send requests, and the credentials that you enter, to ${url.origin}?`)) return;
  remember("server", chosen);
  location.reload();
}

/** The chosen server, where the interface's own sender looks for it. */
function publishServer() {
  const server = recall("server");
  if (server === undefined || document.querySelector('meta[name="dragoman-server"]') !== null) return;
  document.head.append(Object.assign(document.createElement("meta"), { name: "dragoman-server", content: server }));
}

const base64Url = (bytes: Uint8Array) =>
  btoa(String.fromCharCode(...bytes))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
const randomText = () => base64Url(crypto.getRandomValues(new Uint8Array(32)));
const TOKEN_DEADLINE = 5 * 60_000;

async function askForToken(tokenUrl: string | undefined, fields: Record<string, string | undefined>): Promise<string> {
  const given = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined || value === "" ? [] : [[name, value]],
  );
  const body = new URLSearchParams(given);
  const response = await fetch(tokenUrl ?? "", { method: "POST", body, headers: { Accept: "application/json" } });
  const answer = await response.json().catch(() => ({}));
  if (!response.ok || typeof answer.access_token !== "string")
    throw new Error(answer.error_description ?? answer.error ?? `The token server answered ${response.status}.`);
  return answer.access_token;
}

/** Opens the sign-in of the API in a window and waits until it comes back to this page's own address. */
function signInWindow(address: string, state: string): Promise<URLSearchParams> {
  const opened = open(address, "dragoman-sign-in", "width=520,height=680");
  if (opened === null) return Promise.reject(new Error("The browser blocked the sign-in window."));
  return new Promise((resolve, reject) => {
    const end = Date.now() + TOKEN_DEADLINE;
    const stop = () => {
      clearInterval(timer);
      removeEventListener("message", whenTold);
    };
    const whenTold = (event: MessageEvent) => {
      if (event.origin !== location.origin || event.data?.dragomanSignIn === undefined) return;
      const answer = new URLSearchParams(event.data.dragomanSignIn);
      if (answer.get("state") !== state) return;
      const error = answer.get("error_description") ?? answer.get("error");
      stop();
      if (error !== null) reject(new Error(error));
      else resolve(answer);
    };
    const timer = setInterval(() => {
      if (!opened.closed && Date.now() <= end) return;
      stop();
      reject(new Error("The sign-in was not completed."));
    }, 500);
    addEventListener("message", whenTold);
  });
}

/** Gets an OAuth 2 token by a flow of the specification; with PKCE where the flow has a code. */
async function getToken(flow: Flow, values: Values): Promise<string> {
  const scope = values.scopes;
  const client = values["client id"];
  if (flow.kind === "clientCredentials")
    return askForToken(flow.tokenUrl, {
      grant_type: "client_credentials",
      client_id: client,
      client_secret: values["client secret"],
      scope,
    });
  if (flow.kind === "password")
    return askForToken(flow.tokenUrl, {
      grant_type: "password",
      username: values["user name"],
      password: values.password,
      client_id: client,
      scope,
    });
  if (location.protocol === "file:") throw new Error("Serve this page over HTTP: a sign-in cannot return to a file.");
  const address = new URL(flow.authorizationUrl ?? "");
  if (address.protocol !== "https:" && address.protocol !== "http:")
    throw new Error("The sign-in address is not a web address.");
  const [state, verifier, redirect] = [randomText(), randomText(), location.origin + location.pathname];
  const challenge = base64Url(
    new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(verifier))),
  );
  const isImplicit = flow.kind === "implicit";
  const query = {
    response_type: isImplicit ? "token" : "code",
    client_id: client ?? "",
    redirect_uri: redirect,
    scope: scope ?? "",
    state,
    ...(isImplicit ? {} : { code_challenge: challenge, code_challenge_method: "S256" }),
  };
  for (const [name, value] of Object.entries(query)) address.searchParams.set(name, value);
  const answer = await signInWindow(address.href, state);
  if (isImplicit) return answer.get("access_token") ?? "";
  return askForToken(flow.tokenUrl, {
    grant_type: "authorization_code",
    code: answer.get("code") ?? "",
    redirect_uri: redirect,
    client_id: client,
    code_verifier: verifier,
  });
}

/** In the sign-in window: hands the answer to the page that opened it. True if this is such a window. */
function returnFromSignIn() {
  const answer = location.search.includes("state=")
    ? location.search
    : location.hash.includes("state=")
      ? location.hash
      : "";
  if (window.name !== "dragoman-sign-in" || answer === "" || window.opener === null) return false;
  window.opener.postMessage({ dragomanSignIn: answer.slice(1) }, location.origin);
  close();
  return true;
}

const blobOf = (content: Data, type: string) => (content instanceof Blob ? content : new Blob([content], { type }));

function saveFile(content: Data, name: string, contentType: string) {
  const address = URL.createObjectURL(blobOf(content, contentType));
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** An image of the API. As an image it cannot run scripts or load anything, whatever it holds. */
function Picture({ content, contentType }: { content: Data; contentType: string }) {
  const [address, setAddress] = useState<string>();
  useEffect(() => {
    const made = URL.createObjectURL(blobOf(content, contentType));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [content, contentType]);
  return address === undefined
    ? null
    : createElement("img", { src: address, alt: "The image of the answer", style: { maxWidth: "100%" } });
}

const tools: FileTools = {
  saveFile,
  showImage: (content, contentType) => createElement(Picture, { content, contentType }),
  copyText: (text) => void navigator.clipboard?.writeText(text).catch(() => {}),
  openApart: (route) => void window.open(`#${route}`, "_blank", "noopener"),
};

/** The keys of the interface work before anything in it was pressed: what no element got, the interface gets. */
function forwardKeys() {
  addEventListener("keydown", (event) => {
    const isFree = event.target === document.body || event.target === document.documentElement;
    if (!isFree || !(event.ctrlKey || event.metaKey) || event.key.toLowerCase() !== "k") return;
    event.preventDefault();
    const { key, ctrlKey, metaKey } = event;
    const copy = new KeyboardEvent("keydown", { key, ctrlKey, metaKey, bubbles: true, cancelable: true });
    document.querySelector(".dragoman")?.dispatchEvent(copy);
  });
}

publishServer();
forwardKeys();
const isReturning = returnFromSignIn();

/** Shows the interface `App` with everything that a page can give it. */
export function Shell({ App, request }: { App: ComponentType<HostProps>; request?: Request }) {
  const [route, setRoute] = useState(readRoute);
  useEffect(() => {
    history.scrollRestoration = "manual";
    const whenMoved = (event: PopStateEvent) => {
      setRoute(readRoute());
      restoreScroll(event.state?.scroll ?? 0);
    };
    addEventListener("popstate", whenMoved);
    return () => removeEventListener("popstate", whenMoved);
  }, []);
  const whenRouted = (next: string, isReplacing: boolean) => {
    if (next === readRoute()) return;
    writeRoute(next, isReplacing);
    setRoute(next);
  };
  const whenLeft = () => history.back();
  if (isReturning) return null;
  const isOwn = request === undefined;
  return createElement(App, {
    ...tools,
    request,
    route,
    whenRouted,
    whenLeft,
    recall,
    remember,
    whenServerChosen: isOwn ? chooseServer : undefined,
    getToken: isOwn ? getToken : undefined,
  });
}
