// ---- Connection: server, credentials, extra headers and a test request; and the palette that finds everything ----

/** Stands for the server that the reader chose; the page keeps its address. */
const CHOSEN_SERVER = -1;

/** A panel over the page. It keeps the focus until it is closed. */
function Dialog({ title, whenClosed, children }) {
  const heading = useRef(null);
  useEffect(() => {
    heading.current?.focus();
  }, []);
  return (
    <div className="dragoman-veil">
      <div className="dragoman-drawer" role="dialog" aria-modal="true" aria-label={title} onKeyDown={(event) => {
        if (event.key === "Escape") whenClosed();
      }}>
        <span tabIndex={0} onFocus={() => heading.current?.focus()} />
        <div className="dragoman-row">
          <h2 className="dragoman-grow" tabIndex={-1} ref={heading}>
            {title}
          </h2>
          <Button label="Close" isSmall whenPressed={() => whenClosed()} />
        </div>
        {children}
        <span tabIndex={0} onFocus={() => heading.current?.focus()} />
      </div>
    </div>
  );
}

/** Credentials stay in this page's memory and go to the API only. */
function ConnectionPanel({ ui, whenClosed }) {
  return (
    <Dialog title="Connection" whenClosed={() => whenClosed()}>
      <ServerForm ui={ui} />
      {PLAN.auth ? (
        <>
          <h3 className="dragoman-subtitle">Credentials</h3>
          <p className="dragoman-hint">What you enter stays in the memory of this page, is sent to the API only, and is gone when the page is closed.</p>
          <SchemeRules />
          {PLAN.schemes.map((scheme, index) => (
            <SchemeForm key={index} ui={ui} scheme={scheme} held={own(ui.held, index) ?? {}} whenChanged={(next) => ui.hold(index, next)} />
          ))}
        </>
      ) : null}
      <HeaderRows rows={ui.headers} whenChanged={(next) => ui.setHeaders(next)} />
      <TestRequest ui={ui} />
      <Button label="Done" kind="primary" whenPressed={() => whenClosed()} />
    </Dialog>
  );
}

function ServerForm({ ui }) {
  const id = useId();
  const templates = PLAN.servers.filter((choice) => (choice.variables ?? []).length > 0);
  return (
    <div className="dragoman-field">
      <label htmlFor={id}>Server</label>
      <select id={id} className="dragoman-input" value={String(ui.server)} onChange={(event) => ui.setServer(Number(event.target.value))}>
        {ui.server === CHOSEN_SERVER ? <option value={String(CHOSEN_SERVER)}>The address that you chose</option> : null}
        {PLAN.servers.map((choice, index) => (
          <option key={index} value={String(index)}>
            {choice.note ? `${choice.note} (${choice.url})` : choice.url || "This page's server"}
          </option>
        ))}
      </select>
      {ui.whenServerChosen === undefined ? null : <AddressForm ui={ui} />}
      {ui.whenServerChosen === undefined ? null : templates.map((choice, index) => <TemplateForm key={index} ui={ui} choice={choice} />)}
    </div>
  );
}

function AddressForm({ ui }) {
  const [address, setAddress] = useState("");
  const isReady = /^(https?:\/\/|\/)/.test(address.trim());
  return (
    <>
      <Field input={{ bare: true, name: "address", kind: "url", example: "http://localhost:8080/v1" }} draft={address} place="" problems={[]} caption="Another address" whenChanged={(next) => setAddress(next ?? "")} />
      <div className="dragoman-states">
        <Button label="Use this address" isSmall isBusy={!isReady} whenPressed={() => ui.whenServerChosen(address.trim())} />
        {ui.server === CHOSEN_SERVER ? <Button label="Forget it" kind="quiet" isSmall whenPressed={() => ui.whenServerChosen("")} /> : null}
      </div>
    </>
  );
}

/** A server whose address has variables. */
function TemplateForm({ ui, choice }) {
  const [values, setValues] = useState({});
  const text = (variable) => own(values, variable.name) ?? variable.initial ?? "";
  const address = choice.variables.reduce((url, variable) => url.split(`{${variable.name}}`).join(text(variable)), choice.template);
  return (
    <div className="dragoman-box">
      <code className="dragoman-code">{choice.template}</code>
      {choice.variables.map((variable) => (
        <Field key={variable.name} input={{ bare: true, name: variable.name, kind: "text", note: variable.note }} draft={text(variable)} place="" problems={[]} whenChanged={(next) => setValues(withOwn(values, variable.name, next ?? ""))} />
      ))}
      <div>
        <Button label={`Use ${address}`} isSmall isBusy={!/^(https?:\/\/[^{}]+|\/[^{}]*)$/.test(address)} whenPressed={() => ui.whenServerChosen(address)} />
      </div>
    </div>
  );
}

/** Which schemes are needed together, and which in place of each other. */
function SchemeRules() {
  const sets = new Set(PLAN.operations.map((operation) => JSON.stringify(operation.security ?? [])));
  const rules = [...sets].map((text) => JSON.parse(text)).filter((all) => all.length > 1 || all.some((one) => one.length > 1));
  if (rules.length === 0) return null;
  return (
    <ul className="dragoman-notes">
      {rules.slice(0, 6).map((all, index) => (
        <li key={index}>{all.map((one) => (one.length === 0 ? "nothing" : one.map((scheme) => PLAN.schemes.at(scheme).name).join(" and "))).join(", or ")}</li>
      ))}
    </ul>
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

function SchemeForm({ ui, scheme, held, whenChanged }) {
  const words = SCHEME_WORDS.find(([kind]) => kind === scheme.kind)?.at(1) ?? "Credentials";
  const secret = { bare: true, name: scheme.kind === "basic" ? "password" : words, kind: "secret", note: scheme.note };
  return (
    <div className="dragoman-box">
      <strong>{scheme.name}</strong>
      {scheme.kind === "mutualTls" ? <p className="dragoman-hint">The browser presents its own certificate.</p> : null}
      {scheme.place === "cookie" ? <p className="dragoman-hint">Browsers do not let a page set this cookie for another site; a host that supplies the requests can.</p> : null}
      {scheme.kind === "basic" ? <Field input={{ bare: true, name: "user name", kind: "text" }} draft={held.account} place="" problems={[]} whenChanged={(next) => whenChanged({ account: next, secret: held.secret })} /> : null}
      {scheme.kind === "mutualTls" ? null : <Field input={secret} draft={held.secret} place="" problems={[]} caption={scheme.kind === "basic" ? "Password" : words} whenChanged={(next) => whenChanged({ account: held.account, secret: next })} />}
      {(scheme.flows ?? []).map((flow) => (
        <FlowForm key={flow.kind} ui={ui} flow={flow} whenChanged={(token) => whenChanged({ account: held.account, secret: token })} />
      ))}
    </div>
  );
}

/** One way to get an OAuth 2 token. */
function FlowForm({ ui, flow, whenChanged }) {
  const [values, setValues] = useState({ scopes: (flow.scopes ?? []).join(" ") });
  const [message, setMessage] = useState("");
  const names = { clientCredentials: ["client id", "client secret", "scopes"], password: ["user name", "password", "client id", "scopes"] };
  const shown = own(names, flow.kind) ?? ["client id", "scopes"];
  const set = (name, next) => setValues(withOwn(values, name, next ?? ""));
  const start = () => {
    setMessage("Waiting for the sign-in…");
    ui.getToken(flow, values).then((token) => {
      whenChanged(token);
      setMessage("Signed in.");
    }).catch((error) => setMessage(String(error?.message ?? error)));
  };
  const address = flow.authorizationUrl ?? flow.tokenUrl;
  if (ui.getToken === undefined) {
    return (
      <p className="dragoman-hint">
        {`${labelOf(flow.kind)} flow. `}
        {safeUrl(address) === undefined ? null : (
          <a href={safeUrl(address)} target="_blank" rel="noopener noreferrer">
            Get a token
          </a>
        )}
      </p>
    );
  }
  return (
    <details>
      <summary>{`Sign in (${labelOf(flow.kind).toLowerCase()})`}</summary>
      <div className="dragoman-form">
        {shown.map((name) => (
          <Field key={name} input={{ bare: true, name, kind: /secret|password/.test(name) ? "secret" : "text" }} draft={own(values, name)} place="" problems={[]} whenChanged={(next) => set(name, next)} />
        ))}
        <div>
          <Button label="Get a token" isSmall whenPressed={() => start()} />
        </div>
        <span className="dragoman-hint" role="status">
          {message}
        </span>
      </div>
    </details>
  );
}

function HeaderRows({ rows, whenChanged }) {
  const changed = (index, name, next) => whenChanged(rows.map((row, at) => (at === index ? withOwn(row, name, next ?? "") : row)));
  return (
    <>
      <h3 className="dragoman-subtitle">Extra headers</h3>
      {rows.map((row, index) => (
        <div key={index} className="dragoman-row">
          <Field input={{ bare: true, name: "name", kind: "text", required: true }} draft={row.name} place="" problems={[]} whenChanged={(next) => changed(index, "name", next)} />
          <Field input={{ bare: true, name: "value", kind: "text", required: true }} draft={row.text} place="" problems={[]} whenChanged={(next) => changed(index, "text", next)} />
          <Button label="Remove" kind="quiet" isSmall whenPressed={() => whenChanged(rows.filter((row, at) => at !== index))} />
        </div>
      ))}
      <div>
        <Button label="Add header" isSmall whenPressed={() => whenChanged([...rows, { name: "", text: "" }])} />
      </div>
    </>
  );
}

/** Calls something that needs no input, to see whether server and credentials are right. */
function TestRequest({ ui }) {
  const [state, setState] = useState({ phase: "waiting" });
  const isReadable = (operation) => operation.writes !== true && (operation.inputs ?? []).every((input) => input.required !== true || input.initial !== undefined);
  const operation = PLAN.operations.find((one) => isReadable(one) && one.deprecated !== true);
  if (operation === undefined) return null;
  const run = () => {
    const since = Date.now();
    setState({ phase: "loading" });
    ui.perform(operation, buildCall(operation, startDrafts(operation, {}), undefined), new AbortController()).then((next) => setState(withOwn(next, "took", Date.now() - since)));
  };
  const outcome = state.phase === "done" ? `It answers (${state.status}, ${state.took} ms).` : state.phase === "failed" ? (state.status === 0 ? "It cannot be reached. Check the address, the network, and that the API allows requests from this page (CORS)." : `It answered ${state.status}. ${state.message}`) : "";
  return (
    <div className="dragoman-states">
      <Button label={state.phase === "loading" ? "Testing…" : "Test the connection"} isBusy={state.phase === "loading"} signature={operation.signature} whenPressed={() => run()} />
      <span role="status" data-testid="connection-test" className={state.phase === "failed" ? "dragoman-problem" : "dragoman-hint"}>
        {outcome}
      </span>
    </div>
  );
}

/** Everything that a resource can be found by. */
function searchTexts(resource) {
  const columns = (resource.list?.columns ?? []).map((column) => column.field);
  const operations = resource.operations.map((index) => PLAN.operations.at(index));
  return [resource.title, resource.group ?? "", resource.note ?? "", ...columns, ...operations.flatMap(operationTexts)];
}

function operationTexts(operation) {
  const body = operation.body === undefined ? [] : fieldsOf(operation.body.input);
  return [operation.title, operation.signature, operation.note ?? "", ...[...(operation.inputs ?? []), ...body].map((input) => input.name)];
}

/** What fits a text: resources first, then operations; what begins with the text before what holds it. */
function findings(wanted) {
  const resources = PLAN.resources.filter((resource) => resource.removed !== true);
  const places = resources.flatMap((resource) => [
    { text: resource.title, where: resource.group ?? "", rest: [resource.note ?? "", ...(resource.list?.columns ?? []).map((column) => column.field)], page: { kind: "resource", resource: resource.id } },
    ...resource.operations.filter(isAllowed).map((index) => ({ text: PLAN.operations.at(index).title, where: PLAN.operations.at(index).signature, rest: operationTexts(PLAN.operations.at(index)), page: { kind: "resource", resource: resource.id, unfolded: index } })),
  ]);
  const score = (place) => {
    const title = place.text.toLowerCase();
    if (title.startsWith(wanted)) return 0;
    if (title.includes(wanted)) return 1;
    if (place.where.toLowerCase().includes(wanted)) return 2;
    return place.rest.some((text) => text.toLowerCase().includes(wanted)) ? 3 : 9;
  };
  return places.map((place) => ({ place, rank: score(place) })).filter((one) => one.rank < 9).toSorted((a, b) => a.rank - b.rank).slice(0, 30).map((one) => one.place);
}

/** Finds resources and operations by name, address, field or description, from the keyboard. */
function Palette({ ui, whenClosed }) {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const id = useId();
  const control = useRef(null);
  useEffect(() => {
    control.current?.focus();
  }, []);
  const found = findings(text.trim().toLowerCase());
  const open = (place) => {
    whenClosed();
    ui.choose(place.page);
  };
  return (
    <div className="dragoman-veil dragoman-center">
      <div className="dragoman-palette" role="dialog" aria-modal="true" aria-label="Find" onKeyDown={(event) => {
        if (event.key === "Escape") whenClosed();
        if (event.key === "ArrowDown") setAt(Math.min(at + 1, found.length - 1));
        if (event.key === "ArrowUp") setAt(Math.max(at - 1, 0));
      }}>
        <form onSubmit={(event) => {
          event.preventDefault();
          if (found.at(at) !== undefined) open(found.at(at));
        }}>
          <label className="dragoman-hidden" htmlFor={id}>
            Find a resource, operation or field
          </label>
          <input id={id} ref={control} type="search" className="dragoman-input" placeholder="Find a resource, operation or field" autoComplete="off" value={text} onChange={(event) => {
            setText(event.target.value);
            setAt(0);
          }} />
        </form>
        <ul className="dragoman-found">
          {found.map((place, index) => (
            <li key={index}>
              <button type="button" className={index === at ? "dragoman-navitem dragoman-chosen" : "dragoman-navitem"} onClick={() => open(place)}>
                <span>{place.text}</span>
                <code className="dragoman-code">{place.where}</code>
              </button>
            </li>
          ))}
        </ul>
        {found.length === 0 ? <p className="dragoman-hint dragoman-padded">Nothing fits.</p> : null}
        <div className="dragoman-padded">
          <Button label="Close" isSmall whenPressed={() => whenClosed()} />
        </div>
      </div>
    </div>
  );
}
