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

function matchesSearch(resource, wanted) {
  const texts = [resource.title, resource.group ?? "", ...resource.operations.flatMap((index) => [PLAN.operations.at(index).title, PLAN.operations.at(index).signature])];
  return texts.some((text) => text.toLowerCase().includes(wanted));
}

function Navigation({ ui, page, isShown }) {
  const [text, setText] = useState("");
  const id = useId();
  const wanted = text.trim().toLowerCase();
  const resources = PLAN.resources.filter((resource) => resource.removed !== true && (wanted === "" || matchesSearch(resource, wanted)));
  const groups = [...new Set(resources.map((resource) => resource.group ?? ""))];
  const isGrouped = groups.length > 1;
  return (
    <nav className={isShown ? "dragoman-side dragoman-side-shown" : "dragoman-side"} aria-label="Resources">
      <div className="dragoman-field" role="search">
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

/** Credentials stay in this page's memory and go to the API only. */
function SignInPanel({ ui, whenClosed }) {
  const title = useRef(null);
  useEffect(() => {
    title.current?.focus();
  }, []);
  return (
    <div className="dragoman-veil">
      <div className="dragoman-drawer" role="dialog" aria-modal="true" aria-label="Sign in" onKeyDown={(event) => {
        if (event.key === "Escape") whenClosed();
      }}>
        <div className="dragoman-row">
          <h2 className="dragoman-grow" tabIndex={-1} ref={title}>
            Sign in
          </h2>
          <Button label="Close" isSmall whenPressed={() => whenClosed()} />
        </div>
        <p className="dragoman-hint">What you enter stays in the memory of this page, is sent to the API only, and is gone when the page is closed.</p>
        {PLAN.schemes.map((scheme, index) => (
          <SchemeForm key={index} scheme={scheme} held={own(ui.held, index) ?? {}} whenChanged={(next) => ui.hold(index, next)} />
        ))}
        <Button label="Done" kind="primary" whenPressed={() => whenClosed()} />
      </div>
    </div>
  );
}

const SCHEME_WORDS = [
  ["apiKey", "API key"],
  ["basic", "User name and password"],
  ["bearer", "Bearer token"],
  ["http", "Credentials"],
  ["oauth2", "OAuth 2 access token"],
  ["openIdConnect", "OpenID Connect token"],
  ["mutualTls", "Client certificate"],
];

function SchemeForm({ scheme, held, whenChanged }) {
  const words = SCHEME_WORDS.find(([kind]) => kind === scheme.kind)?.at(1) ?? "Credentials";
  const secret = { name: scheme.kind === "basic" ? "password" : words, kind: "secret", note: scheme.note };
  return (
    <div className="dragoman-box">
      <strong>{scheme.name}</strong>
      {scheme.kind === "mutualTls" ? <p className="dragoman-hint">The browser presents its own certificate.</p> : null}
      {scheme.place === "cookie" ? <p className="dragoman-hint">Browsers do not let a page set this cookie for another site; a host that supplies the requests can.</p> : null}
      {scheme.kind === "basic" ? <Field input={{ name: "user name", kind: "text" }} draft={held.account} place="" problems={[]} whenChanged={(next) => whenChanged({ account: next, secret: held.secret })} /> : null}
      {scheme.kind === "mutualTls" ? null : <Field input={secret} draft={held.secret} place="" problems={[]} caption={scheme.kind === "basic" ? "Password" : words} whenChanged={(next) => whenChanged({ account: held.account, secret: next })} />}
      {(scheme.flows ?? []).map((flow) => (
        <FlowNote key={flow.kind} flow={flow} />
      ))}
    </div>
  );
}

function FlowNote({ flow }) {
  const address = flow.authorizationUrl ?? flow.tokenUrl;
  return (
    <p className="dragoman-hint">
      {`${labelOf(flow.kind)} flow. `}
      {safeUrl(address) === undefined ? null : (
        <a href={safeUrl(address)} target="_blank" rel="noopener noreferrer">
          Get a token
        </a>
      )}
      {(flow.scopes ?? []).length > 0 ? ` Scopes: ${flow.scopes.join(", ")}.` : ""}
    </p>
  );
}

function ServerPicker({ server, whenChanged }) {
  const id = useId();
  if (PLAN.servers.length < 2) return null;
  return (
    <>
      <label className="dragoman-hidden" htmlFor={id}>
        Server
      </label>
      <select id={id} className="dragoman-input dragoman-server" value={String(server)} onChange={(event) => whenChanged(Number(event.target.value))}>
        {PLAN.servers.map((choice, index) => (
          <option key={index} value={String(index)}>
            {choice.note ? `${choice.note} (${choice.url})` : choice.url || "This page's server"}
          </option>
        ))}
      </select>
    </>
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

/** The whole interface. All calls go through `request`, or through fetch where the host gives none. */
export default function App({ request }) {
  const [pages, setPages] = useState([startPage()]);
  const [held, setHeld] = useState({});
  const [server, setServer] = useState(0);
  const [theme, setTheme] = useState(own(PLAN, "theme"));
  const [turn, setTurn] = useState(0);
  const [notice, setNotice] = useState("");
  const [isSigningIn, setIsSigningIn] = useState(false);
  const [isMenuShown, setIsMenuShown] = useState(false);
  const page = pages.at(-1);
  const send = request ?? ((call) => sendRequest(call));
  const ui = {
    held,
    turn,
    stamp: JSON.stringify([held, server]),
    perform: (operation, call, controller) => performCall(send, operation, call, held, server, controller),
    choose: (next) => {
      setPages([next]);
      setIsMenuShown(false);
    },
    goTo: (next) => setPages([...pages, next]),
    goBack: () => {
      setPages(pages.length > 1 ? pages.slice(0, -1) : pages);
      setTurn(turn + 1);
    },
    goBackTo: (index) => setPages(pages.slice(0, index + 1)),
    refresh: () => setTurn(turn + 1),
    tell: (text) => setNotice(text),
    askSignIn: () => setIsSigningIn(true),
    hold: (index, next) => setHeld(withOwn(held, index, next)),
  };
  return (
    <div className={`dragoman dragoman-${theme}`}>
      <style>{STYLES}</style>
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
        <ServerPicker server={server} whenChanged={(next) => setServer(next)} />
        <Button label={theme === "dark" ? "Light" : "Dark"} kind="quiet" whenPressed={() => setTheme(theme === "dark" ? "light" : "dark")} />
        {PLAN.auth ? <Button label={Object.keys(held).length > 0 ? "Credentials" : "Sign in"} whenPressed={() => setIsSigningIn(true)} /> : null}
      </header>
      <Navigation ui={ui} page={page} isShown={isMenuShown} />
      <main className="dragoman-main">
        <Crumbs ui={ui} pages={pages} />
        <CurrentPage key={`${pages.length} ${page.kind} ${page.resource ?? ""}`} ui={ui} page={page} />
      </main>
      {isSigningIn ? <SignInPanel ui={ui} whenClosed={() => setIsSigningIn(false)} /> : null}
      <Notice text={notice} whenClosed={() => setNotice("")} />
    </div>
  );
}

/** A single resource needs no overview. */
function startPage() {
  const shown = PLAN.resources.filter((resource) => resource.removed !== true);
  return shown.length === 1 ? { kind: "resource", resource: shown.at(0).id } : { kind: "overview" };
}

function CurrentPage({ ui, page }) {
  if (page.kind === "item") return <ItemScreen ui={ui} page={page} />;
  if (page.kind === "form") return <FormScreen ui={ui} page={page} />;
  if (page.kind === "incoming") return <IncomingScreen />;
  if (page.kind === "resource") return <ResourcePage ui={ui} page={page} />;
  return <Overview ui={ui} />;
}
