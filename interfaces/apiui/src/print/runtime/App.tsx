// ---- The whole interface ----

import { useEffect, useRef, useState } from "react";
import STYLES from "./styles.css?inline";
import { PLAN } from "../plan";
import { ResourcePage } from "../resources";
import { ConnectionPanel } from "./connection";
import { CHOSEN_SERVER } from "./dialog";
import { parseJson } from "./drafts";
import { FormScreen } from "./edit-screen";
import { ItemScreen } from "./item-screen";
import { Navigation, Notice } from "./navigation";
import { IncomingScreen, Overview } from "./overview";
import { Palette } from "./palette";
import { Button } from "./parts";
import { Crumbs } from "./resource-screen";
import { pageOfRoute, parentOf, routeOf, trailOf, useRoutes } from "./routes";
import { performCall } from "./sending";
import { FootSlot, SLOT_STYLES, TopSlot } from "./slots";
import { fieldOf } from "./values";
import { exactJsonText, own, sendRequest, withAll, withOwn } from "./vetted";
import type { Data, FixedHeader, HostProps, Operation, Page, Request, Resource, Ui, Values } from "./types";

/**
 * The whole interface. All calls go through `request`, or through fetch where the host gives none. The page that shows
 * it may also give `route` and `whenRouted` (the address of the view), `session` (another text after each sign-in, so that
 * what failed is loaded again), `recall` and `remember` (a small memory), `whenServerChosen` (another server), `getToken` (OAuth 2), and what only a page can do with files (`saveFile`,
 * `showImage`, `copyText`, `openApart`).
 */
export default function App({
  request,
  session,
  route,
  whenRouted,
  whenLeft,
  recall,
  remember,
  whenServerChosen,
  getToken,
  saveFile,
  showImage,
  copyText,
  openApart,
}: HostProps) {
  const routes = useRoutes(route, whenRouted, whenLeft);
  const [items, setItems] = useState({});
  const [views, setViews] = useState({});
  const [held, setHeld] = useState({});
  const [headers, setHeaders] = useState(own(PLAN, "headers") ?? []);
  const [server, setServer] = useState(() => startServer(recall));
  const [theme, setTheme] = useState(own(PLAN, "theme"));
  const [turn, setTurn] = useState(0);
  const [notice, setNotice] = useState("");
  const [keyFields, setKeyFields] = useState(() => parseJson(recall?.("keys") ?? "") ?? {});
  const [panel, setPanel] = useState("");
  const [signIns, setSignIns] = useState(0);
  const [isMenuShown, setIsMenuShown] = useState(false);
  const main = useRef<HTMLElement>(null);
  const page = withOwn(pageOfRoute(routes.route), "item", own(items, routes.route));
  const send = request ?? ((call: Parameters<Request>[0]) => sendRequest(call));
  useEffect(() => {
    if (routes.isMoved) main.current?.focus();
  }, [routes.route]);
  const open = (next: Page, isReplacing?: boolean) => {
    const target = routeOf(next);
    if (next.item !== undefined) setItems(withOwn(items, target, next.item));
    setIsMenuShown(false);
    routes.travel(target, isReplacing);
  };
  const ui = {
    held,
    turn,
    keyFields,
    route: routes.route,
    isHosted: request !== undefined,
    session: `${session ?? ""} ${signIns}`,
    server,
    headers,
    getToken,
    whenServerChosen,
    tools: { saveFile, showImage, copyText, openApart },
    stamp: exactJsonText([held, server, headers]),
    perform: (operation: Operation, call: Data, controller: AbortController, whenPart?: (text: string) => void) =>
      performCall(
        send,
        operation,
        withOwn(call, "headers", withAll(headersOf(headers), call.headers)),
        held,
        server,
        controller,
        whenPart,
      ),
    choose: (next: Page) => open(next),
    goTo: (next: Page) => open(next),
    replace: (next: Page) => open(next, true),
    goBack: () => {
      setTurn(turn + 1);
      routes.leave(routeOf(parentOf(page)));
    },
    refresh: () => setTurn(turn + 1),
    tell: (text: string) => setNotice(text),
    askSignIn: () => setPanel("connection"),
    hold: (index: number, next: Data) => setHeld((before) => withOwn(before, index, next)),
    setHeaders: (next: Data) => setHeaders(next),
    setServer: (next: Data) => {
      setServer(next);
      remember?.("server number", String(next));
    },
    keptView: (name: string) => own(views, `${routes.route} ${name}`),
    keepView: (name: string, view: Data) => setViews((before) => withOwn(before, `${routes.route} ${name}`, view)),
    chooseKey: (resource: Resource, parameter: Data, field: string, current: Data) => {
      const chosen = withOwn(keyFields, resource.id, withOwn(own(keyFields, resource.id), parameter, field));
      setKeyFields(chosen);
      remember?.("keys", JSON.stringify(chosen));
      open(withOwn(current, "known", withOwn(current.known, parameter, fieldOf(current.item, field))), true);
    },
  };
  return (
    <div
      className={`dragoman dragoman-${theme}`}
      onKeyDown={(event) => {
        if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
          event.preventDefault();
          setPanel("palette");
        }
      }}
    >
      <style>{STYLES}</style>
      <style>{SLOT_STYLES}</style>
      <button type="button" className="dragoman-skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header className="dragoman-top">
        <button
          type="button"
          className="dragoman-button dragoman-menu"
          aria-expanded={isMenuShown}
          onClick={() => setIsMenuShown(!isMenuShown)}
        >
          Menu
        </button>
        <button type="button" className="dragoman-brand" onClick={() => ui.choose({ kind: "overview" })}>
          <span className="dragoman-mark" aria-hidden="true">
            {PLAN.title.charAt(0).toUpperCase()}
          </span>
          <strong>{PLAN.title}</strong>
        </button>
        <span className="dragoman-grow" />
        <TopSlot ui={ui} />
        <Button label="Find…" kind="quiet" whenPressed={() => setPanel("palette")} />
        <Button
          label={theme === "dark" ? "Light" : "Dark"}
          kind="quiet"
          whenPressed={() => setTheme(theme === "dark" ? "light" : "dark")}
        />
        {ui.isHosted ? null : <Button label="Connection" whenPressed={() => setPanel("connection")} />}
      </header>
      <Navigation ui={ui} page={page} isShown={isMenuShown} />
      <main className="dragoman-main" tabIndex={-1} ref={main}>
        <Crumbs ui={ui} pages={trailOf(page)} />
        <CurrentPage key={`${routes.route.split("/call/").at(0)}`} ui={ui} page={page} />
        <FootSlot ui={ui} />
      </main>
      {panel === "connection" && !ui.isHosted ? (
        <ConnectionPanel
          ui={ui}
          whenClosed={() => {
            setPanel("");
            setSignIns(signIns + 1);
          }}
        />
      ) : null}
      {panel === "palette" ? <Palette ui={ui} whenClosed={() => setPanel("")} /> : null}
      <Notice text={notice} whenClosed={() => setNotice("")} />
    </div>
  );
}

/** The server that was used last, or the first one. */
export function startServer(recall?: (name: string) => string | undefined) {
  if (recall?.("server") !== undefined) return CHOSEN_SERVER;
  const number = Number(recall?.("server number") ?? 0);
  return number > 0 && number < PLAN.servers.length ? number : 0;
}

/** Extra headers as an object; later ones win. */
export function headersOf(rows: FixedHeader[]): Values {
  return Object.fromEntries(rows.filter((row) => row.name.trim() !== "").map((row) => [row.name.trim(), row.text]));
}

export function CurrentPage({ ui, page }: { ui: Ui; page: Page }) {
  if (page.kind === "item") return <ItemScreen ui={ui} page={page} />;
  if (page.kind === "form") return <FormScreen ui={ui} page={page} />;
  if (page.kind === "incoming") return <IncomingScreen />;
  if (page.kind === "resource") return <ResourcePage ui={ui} page={page} />;
  return <Overview ui={ui} />;
}
