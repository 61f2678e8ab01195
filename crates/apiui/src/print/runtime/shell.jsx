// ---- Shell: overview, navigation, sign-in, and the whole ----

function Overview({ ui }) {
  const resources = PLAN.resources.filter((resource) => resource.removed !== true);
  return (
    <>
      <PageHead title={PLAN.title} note={PLAN.description}>
        {PLAN.apiVersion ? <Badge text={`Version ${PLAN.apiVersion}`} /> : null}
      </PageHead>
      <div className="dragoman-tiles">
        {resources.slice(0, 60).map((resource) => (
          <button key={resource.id} type="button" className="dragoman-tile" onClick={() => ui.choose({ kind: "resource", resource: resource.id })}>
            <strong>{resource.title}</strong>
            <span className="dragoman-hint">{`${resource.operations.length} ${resource.operations.length === 1 ? "operation" : "operations"}${resource.list === undefined ? "" : ", list"}`}</span>
          </button>
        ))}
      </div>
      {PLAN.assumptions.length > 0 ? (
        <section className="dragoman-panel" aria-label="Assumptions">
          <h2 className="dragoman-title">What was assumed</h2>
          <ul className="dragoman-notes">
            {PLAN.assumptions.map((text, index) => (
              <li key={index}>{text}</li>
            ))}
          </ul>
        </section>
      ) : null}
    </>
  );
}

function IncomingScreen() {
  return (
    <>
      <PageHead title="Webhooks" note="Requests that the API sends to you." />
      <section className="dragoman-panel">
        <IncomingList title="Webhooks" entries={PLAN.webhooks} />
      </section>
    </>
  );
}

function Navigation({ ui, page, isShown }) {
  const [text, setText] = useState("");
  const id = useId();
  const wanted = text.trim().toLowerCase();
  const resources = PLAN.resources.filter((resource) => resource.removed !== true && (wanted === "" || searchTexts(resource).some((text) => text.toLowerCase().includes(wanted))));
  const groups = [...new Set(resources.map((resource) => resource.group ?? ""))];
  const isGrouped = groups.length > 1;
  return (
    <nav className={isShown ? "dragoman-side dragoman-side-shown" : "dragoman-side"} aria-label="Resources">
      <div className="dragoman-field" role="search" aria-label="Resources and operations">
        <label className="dragoman-hidden" htmlFor={id}>
          Search resources and operations
        </label>
        <input id={id} type="search" className="dragoman-input" placeholder="Search…" value={text} onChange={(event) => setText(event.target.value)} />
      </div>
      {groups.map((group) => (
        <div key={group} className="dragoman-navgroup">
          {isGrouped ? <h2>{group === "" ? "Other" : group}</h2> : null}
          <ul>
            {resources
              .filter((resource) => (resource.group ?? "") === group)
              .map((resource) => (
                <li key={resource.id}>
                  <button type="button" className="dragoman-navitem" aria-current={page.resource === resource.id ? "page" : undefined} data-ui-resource={resource.id} onClick={() => ui.choose({ kind: "resource", resource: resource.id })}>
                    <span>{resource.title}</span>
                    <span className="dragoman-count">{resource.operations.length}</span>
                  </button>
                </li>
              ))}
          </ul>
        </div>
      ))}
      {PLAN.webhooks.length > 0 ? (
        <div className="dragoman-navgroup">
          <button type="button" className="dragoman-navitem" aria-current={page.kind === "incoming" ? "page" : undefined} data-ui-resource="webhooks" onClick={() => ui.choose({ kind: "incoming" })}>
            <span>Webhooks</span>
            <span className="dragoman-count">{PLAN.webhooks.length}</span>
          </button>
        </div>
      ) : null}
      {resources.length === 0 ? <p className="dragoman-hint">Nothing is called so.</p> : null}
    </nav>
  );
}

function Notice({ text, whenClosed }) {
  useEffect(() => {
    if (text === "") return undefined;
    const timer = setTimeout(() => whenClosed(), 6000);
    return () => clearTimeout(timer);
  }, [text]);
  if (text === "") return <div role="status" aria-live="polite" className="dragoman-hidden" />;
  return (
    <div role="status" aria-live="polite" className="dragoman-toast">
      <span>{text}</span>
      <button type="button" onClick={() => whenClosed()}>
        Close
      </button>
    </div>
  );
}

/**
 * The whole interface. All calls go through `request`, or through fetch where the host gives none. The page that shows
 * it may also give `route` and `whenRouted` (the address of the view), `recall` and `remember` (a small memory),
 * `whenServerChosen` (another server) and `getToken` (OAuth 2).
 */
export default function App({ request, route, whenRouted, whenLeft, recall, remember, whenServerChosen, getToken }) {
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
  const [isMenuShown, setIsMenuShown] = useState(false);
  const main = useRef(null);
  const page = withOwn(pageOfRoute(routes.route), "item", own(items, routes.route));
  const send = request ?? ((call) => sendRequest(call));
  useEffect(() => {
    if (routes.isMoved) main.current?.focus();
  }, [routes.route]);
  const open = (next, isReplacing) => {
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
    server,
    headers,
    getToken,
    whenServerChosen,
    stamp: exactJsonText([held, server, headers]),
    perform: (operation, call, controller) => performCall(send, operation, withOwn(call, "headers", withAll(headersOf(headers), call.headers)), held, server, controller),
    choose: (next) => open(next),
    goTo: (next) => open(next),
    replace: (next) => open(next, true),
    goBack: () => {
      setTurn(turn + 1);
      routes.leave(routeOf(parentOf(page)));
    },
    refresh: () => setTurn(turn + 1),
    tell: (text) => setNotice(text),
    askSignIn: () => setPanel("connection"),
    hold: (index, next) => setHeld((before) => withOwn(before, index, next)),
    setHeaders: (next) => setHeaders(next),
    setServer: (next) => {
      setServer(next);
      remember?.("server number", String(next));
    },
    keptView: (name) => own(views, `${routes.route} ${name}`),
    keepView: (name, view) => setViews((before) => withOwn(before, `${routes.route} ${name}`, view)),
    chooseKey: (resource, parameter, field, current) => {
      const chosen = withOwn(keyFields, resource.id, withOwn(own(keyFields, resource.id), parameter, field));
      setKeyFields(chosen);
      remember?.("keys", JSON.stringify(chosen));
      open(withOwn(current, "known", withOwn(current.known, parameter, fieldOf(current.item, field))), true);
    },
  };
  return (
    <div className={`dragoman dragoman-${theme}`} onKeyDown={(event) => {
      if ((event.ctrlKey || event.metaKey) && event.key === "k") {
        event.preventDefault();
        setPanel("palette");
      }
    }}>
      <style>{STYLES}</style>
      <button type="button" className="dragoman-skip" onClick={() => main.current?.focus()}>
        Skip to content
      </button>
      <header className="dragoman-top">
        <button type="button" className="dragoman-button dragoman-menu" aria-expanded={isMenuShown} onClick={() => setIsMenuShown(!isMenuShown)}>
          Menu
        </button>
        <button type="button" className="dragoman-brand" onClick={() => ui.choose({ kind: "overview" })}>
          <span className="dragoman-mark" aria-hidden="true">
            {PLAN.title.charAt(0).toUpperCase()}
          </span>
          <strong>{PLAN.title}</strong>
        </button>
        <span className="dragoman-grow" />
        <Button label="Find…" kind="quiet" whenPressed={() => setPanel("palette")} />
        <Button label={theme === "dark" ? "Light" : "Dark"} kind="quiet" whenPressed={() => setTheme(theme === "dark" ? "light" : "dark")} />
        {ui.isHosted ? null : <Button label="Connection" whenPressed={() => setPanel("connection")} />}
      </header>
      <Navigation ui={ui} page={page} isShown={isMenuShown} />
      <main className="dragoman-main" tabIndex={-1} ref={main}>
        <Crumbs ui={ui} pages={trailOf(page)} />
        <CurrentPage key={`${routes.route.split("/call/").at(0)}`} ui={ui} page={page} />
      </main>
      {panel === "connection" && !ui.isHosted ? <ConnectionPanel ui={ui} whenClosed={() => setPanel("")} /> : null}
      {panel === "palette" ? <Palette ui={ui} whenClosed={() => setPanel("")} /> : null}
      <Notice text={notice} whenClosed={() => setNotice("")} />
    </div>
  );
}

/** The server that was used last, or the first one. */
function startServer(recall) {
  if (recall?.("server") !== undefined) return CHOSEN_SERVER;
  const number = Number(recall?.("server number") ?? 0);
  return number > 0 && number < PLAN.servers.length ? number : 0;
}

/** Extra headers as an object; later ones win. */
function headersOf(rows) {
  return Object.fromEntries(rows.filter((row) => row.name.trim() !== "").map((row) => [row.name.trim(), row.text]));
}

function CurrentPage({ ui, page }) {
  if (page.kind === "item") return <ItemScreen ui={ui} page={page} />;
  if (page.kind === "form") return <FormScreen ui={ui} page={page} />;
  if (page.kind === "incoming") return <IncomingScreen />;
  if (page.kind === "resource") return <ResourcePage ui={ui} page={page} />;
  return <Overview ui={ui} />;
}
