// ---- Connection: server, credentials, extra headers and a test request ----

import { useId, useState } from "react";
import { PLAN } from "../plan";
import { buildCall, startDrafts } from "./calls";
import { CHOSEN_SERVER, Dialog } from "./dialog";
import { Field } from "./fields";
import { Button } from "./parts";
import { labelOf } from "./values";
import { own, safeUrl, withOwn } from "./vetted";
import type { CallState, Data, FixedHeader, Flow, Held, Input, Operation, Scheme, ServerChoice, Ui } from "./types";

/** Credentials stay in this page's memory and go to the API only. */
export function ConnectionPanel({ ui, whenClosed }: { ui: Ui; whenClosed: () => void }) {
  return (
    <Dialog title="Connection" whenClosed={() => whenClosed()}>
      <ServerForm ui={ui} />
      {PLAN.auth ? (
        <>
          <h3 className="dragoman-subtitle">Credentials</h3>
          <p className="dragoman-hint">
            What you enter stays in the memory of this page, is sent to the API only, and is gone when the page is
            closed.
          </p>
          <SchemeRules />
          {PLAN.schemes.map((scheme, index) => (
            <SchemeForm
              key={index}
              ui={ui}
              scheme={scheme}
              held={own(ui.held, index) ?? {}}
              whenChanged={(next) => ui.hold(index, next)}
            />
          ))}
        </>
      ) : null}
      <HeaderRows rows={ui.headers} whenChanged={(next) => ui.setHeaders(next)} />
      <TestRequest ui={ui} />
      <Button label="Done" kind="primary" whenPressed={() => whenClosed()} />
    </Dialog>
  );
}

export function ServerForm({ ui }: { ui: Ui }) {
  const id = useId();
  const templates = PLAN.servers.filter((choice) => (choice.variables ?? []).length > 0);
  return (
    <div className="dragoman-field">
      <label htmlFor={id}>Server</label>
      <select
        id={id}
        className="dragoman-input"
        value={String(ui.server)}
        onChange={(event) => ui.setServer(Number(event.target.value))}
      >
        {ui.server === CHOSEN_SERVER ? <option value={String(CHOSEN_SERVER)}>The address that you chose</option> : null}
        {PLAN.servers.map((choice, index) => (
          <option key={index} value={String(index)}>
            {choice.note ? `${choice.note} (${choice.url})` : choice.url || "This page's server"}
          </option>
        ))}
      </select>
      {ui.whenServerChosen === undefined ? null : <AddressForm ui={ui} />}
      {ui.whenServerChosen === undefined
        ? null
        : templates.map((choice, index) => <TemplateForm key={index} ui={ui} choice={choice} />)}
    </div>
  );
}

export function AddressForm({ ui }: { ui: Ui }) {
  const [address, setAddress] = useState("");
  const isReady = /^(https?:\/\/|\/)/.test(address.trim());
  return (
    <>
      <Field
        input={{ bare: true, name: "address", kind: "url", example: "http://localhost:8080/v1" }}
        draft={address}
        place=""
        problems={[]}
        caption="Another address"
        whenChanged={(next) => setAddress(next ?? "")}
      />
      <div className="dragoman-states">
        <Button
          label="Use this address"
          isSmall
          isBusy={!isReady}
          whenPressed={() => ui.whenServerChosen?.(address.trim())}
        />
        {ui.server === CHOSEN_SERVER ? (
          <Button label="Forget it" kind="quiet" isSmall whenPressed={() => ui.whenServerChosen?.("")} />
        ) : null}
      </div>
    </>
  );
}

/** A server whose address has variables. */
export function TemplateForm({ ui, choice }: { ui: Ui; choice: ServerChoice }) {
  const [values, setValues] = useState({});
  const text = (variable: Data) => own(values, variable.name) ?? variable.initial ?? "";
  const variables = choice.variables ?? [];
  const address = variables.reduce(
    (url, variable) => url.split(`{${variable.name}}`).join(text(variable)),
    choice.template ?? "",
  );
  return (
    <div className="dragoman-box">
      <code className="dragoman-code">{choice.template}</code>
      {variables.map((variable) => (
        <Field
          key={variable.name}
          input={{ bare: true, name: variable.name, kind: "text", note: variable.note }}
          draft={text(variable)}
          place=""
          problems={[]}
          whenChanged={(next) => setValues(withOwn(values, variable.name, next ?? ""))}
        />
      ))}
      <div>
        <Button
          label={`Use ${address}`}
          isSmall
          isBusy={!/^(https?:\/\/[^{}]+|\/[^{}]*)$/.test(address)}
          whenPressed={() => ui.whenServerChosen?.(address)}
        />
      </div>
    </div>
  );
}

/** Which schemes are needed together, and which in place of each other. */
export function SchemeRules() {
  const sets = new Set(PLAN.operations.map((operation) => JSON.stringify(operation.security ?? [])));
  const rules = [...sets]
    .map((text) => JSON.parse(text))
    .filter((all) => all.length > 1 || all.some((one: Data) => one.length > 1));
  if (rules.length === 0) return null;
  return (
    <ul className="dragoman-notes">
      {rules.slice(0, 6).map((all, index) => (
        <li key={index}>
          {all
            .map((one: Data) =>
              one.length === 0 ? "nothing" : one.map((scheme: number) => PLAN.schemes.at(scheme).name).join(" and "),
            )
            .join(", or ")}
        </li>
      ))}
    </ul>
  );
}

export const SCHEME_WORDS = [
  ["apiKey", "API key"],
  ["basic", "User name and password"],
  ["bearer", "Bearer token"],
  ["http", "Credentials"],
  ["oauth2", "OAuth 2 access token"],
  ["openIdConnect", "OpenID Connect token"],
  ["mutualTls", "Client certificate"],
];

export function SchemeForm({
  ui,
  scheme,
  held,
  whenChanged,
}: {
  ui: Ui;
  scheme: Scheme;
  held: Held;
  whenChanged: (next: Held) => void;
}) {
  const words = SCHEME_WORDS.find(([kind]) => kind === scheme.kind)?.at(1) ?? "Credentials";
  const secret = { bare: true, name: scheme.kind === "basic" ? "password" : words, kind: "secret", note: scheme.note };
  return (
    <div className="dragoman-box">
      <strong>{scheme.name}</strong>
      {scheme.kind === "mutualTls" ? <p className="dragoman-hint">The browser presents its own certificate.</p> : null}
      {scheme.place === "cookie" ? (
        <p className="dragoman-hint">
          Browsers do not let a page set this cookie for another site; a host that supplies the requests can.
        </p>
      ) : null}
      {scheme.kind === "basic" ? (
        <Field
          input={{ bare: true, name: "user name", kind: "text" }}
          draft={held.account}
          place=""
          problems={[]}
          whenChanged={(next) => whenChanged({ account: next, secret: held.secret })}
        />
      ) : null}
      {scheme.kind === "mutualTls" ? null : (
        <Field
          input={secret}
          draft={held.secret}
          place=""
          problems={[]}
          caption={scheme.kind === "basic" ? "Password" : words}
          whenChanged={(next) => whenChanged({ account: held.account, secret: next })}
        />
      )}
      {(scheme.flows ?? []).map((flow) => (
        <FlowForm
          key={flow.kind}
          ui={ui}
          flow={flow}
          whenChanged={(token) => whenChanged({ account: held.account, secret: token })}
        />
      ))}
    </div>
  );
}

/** One way to get an OAuth 2 token. */
export function FlowForm({ ui, flow, whenChanged }: { ui: Ui; flow: Flow; whenChanged: (next: Data) => void }) {
  const [values, setValues] = useState({ scopes: (flow.scopes ?? []).join(" ") });
  const [message, setMessage] = useState("");
  const names = {
    clientCredentials: ["client id", "client secret", "scopes"],
    password: ["user name", "password", "client id", "scopes"],
  };
  const shown = own(names, flow.kind) ?? ["client id", "scopes"];
  const set = (name: string, next: Data) => setValues(withOwn(values, name, next ?? ""));
  const start = () => {
    setMessage("Waiting for the sign-in…");
    ui.getToken?.(flow, values)
      .then((token) => {
        whenChanged(token);
        setMessage("Signed in.");
      })
      .catch((error) => setMessage(String(error?.message ?? error)));
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
        {shown.map((name: string) => (
          <Field
            key={name}
            input={{ bare: true, name, kind: /secret|password/.test(name) ? "secret" : "text" }}
            draft={own(values, name)}
            place=""
            problems={[]}
            whenChanged={(next) => set(name, next)}
          />
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

export function HeaderRows({ rows, whenChanged }: { rows: FixedHeader[]; whenChanged: (next: Data) => void }) {
  const changed = (index: number, name: string, next: Data) =>
    whenChanged(rows.map((row, at) => (at === index ? withOwn(row, name, next ?? "") : row)));
  return (
    <>
      <h3 className="dragoman-subtitle">Extra headers</h3>
      {rows.map((row, index) => (
        <div key={index} className="dragoman-row">
          <Field
            input={{ bare: true, name: "name", kind: "text", required: true }}
            draft={row.name}
            place=""
            problems={[]}
            whenChanged={(next) => changed(index, "name", next)}
          />
          <Field
            input={{ bare: true, name: "value", kind: "text", required: true }}
            draft={row.text}
            place=""
            problems={[]}
            whenChanged={(next) => changed(index, "text", next)}
          />
          <Button
            label="Remove"
            kind="quiet"
            isSmall
            whenPressed={() => whenChanged(rows.filter((row, at) => at !== index))}
          />
        </div>
      ))}
      <div>
        <Button label="Add header" isSmall whenPressed={() => whenChanged([...rows, { name: "", text: "" }])} />
      </div>
    </>
  );
}

/** Calls something that needs no input, to see whether server and credentials are right. */
export function TestRequest({ ui }: { ui: Ui }) {
  const [state, setState] = useState<CallState>({ phase: "waiting" });
  const isReadable = (operation: Operation) =>
    operation.writes !== true &&
    (operation.inputs ?? []).every((input: Input) => input.required !== true || input.initial !== undefined);
  const operation = PLAN.operations.find((one) => isReadable(one) && one.deprecated !== true);
  if (operation === undefined) return null;
  const run = () => {
    const since = Date.now();
    setState({ phase: "loading" });
    ui.perform(operation, buildCall(operation, startDrafts(operation, {}), undefined), new AbortController()).then(
      (next) => setState(withOwn(next, "took", Date.now() - since)),
    );
  };
  const outcome =
    state.phase === "done"
      ? `It answers (${state.status}, ${state.took} ms).`
      : state.phase === "failed"
        ? state.status === 0
          ? "It cannot be reached. Check the address, the network, and that the API allows requests from this page (CORS)."
          : `It answered ${state.status}. ${state.message}`
        : "";
  return (
    <div className="dragoman-states">
      <Button
        label={state.phase === "loading" ? "Testing…" : "Test the connection"}
        isBusy={state.phase === "loading"}
        signature={operation.signature}
        whenPressed={() => run()}
      />
      <span
        role="status"
        data-testid="connection-test"
        className={state.phase === "failed" ? "dragoman-problem" : "dragoman-hint"}
      >
        {outcome}
      </span>
    </div>
  );
}
