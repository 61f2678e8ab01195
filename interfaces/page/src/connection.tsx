// The connection of a tab: where the API is, how to sign in, and whether it answers. Values that are typed here go to the
// process and are not kept in the page.
import { useState } from "preact/hooks";
import { attempt } from "./actions";
import { call, problemOf } from "./api";
import { timeText } from "./files";
import { renewFrame } from "./frames";
import { Badge, Button, Check, Dialog, Dot, Field, ProblemNote, TextField } from "../../../web/common/parts";
import { STATES, connectionOf, testConnection, useBaseUrl } from "./stage";
import { tell, update } from "./store";
import type { Studio } from "./store";
import type { Problem } from "../../../web/common/problem";
import type { Connection, Place, Scheme, Tab } from "./types";

export function ConnectionPanel({ studio, tab }: { studio: Studio; tab: Tab }) {
  const connection = connectionOf(studio, tab);
  const isConfirmed = tab.baseUrl?.isConfirmed === true;
  return (
    <Dialog title="Connection" kind="sheet" whenClosed={() => update({ panel: undefined })}>
      <ol class="steps">
        <li>
          <h3>
            Where the API is {isConfirmed ? <Badge tone="good">Confirmed</Badge> : null}
          </h3>
          <Address tab={tab} />
        </li>
        <li>
          <h3>How it knows you</h3>
          {isConfirmed ? <SignIn key={tab.connection} tab={tab} connection={connection} /> : <p class="soft">Confirm the address first: credentials belong to it.</p>}
        </li>
        <li>
          <h3>Whether it answers</h3>
          <Status tab={tab} connection={connection} isConfirmed={isConfirmed} studio={studio} />
        </li>
      </ol>
    </Dialog>
  );
}

function Address({ tab }: { tab: Tab }) {
  const [url, setUrl] = useState(tab.baseUrl?.url ?? "");
  const [isBusy, setIsBusy] = useState(false);
  const { confirm, question } = useBaseUrl(tab);
  const servers = tab.specification?.servers ?? [];
  const isSame = tab.baseUrl?.isConfirmed === true && tab.baseUrl.url === url;
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        setIsBusy(true);
        void confirm(url.trim()).finally(() => setIsBusy(false));
      }}
    >
      <TextField label="Base URL" kind="url" value={url} isRequired isCode note="Requests of the interface go there and nowhere else." placeholder="https://api.example.com/v1" whenChanged={setUrl} />
      {servers.length < 2 ? null : (
        <div class="options" role="group" aria-label="Servers of the specification">
          {servers.map((server) => (
            <button key={server.url} type="button" class="chip" aria-pressed={server.url === url} title={server.description} onClick={() => setUrl(server.url)}>
              {server.url}
            </button>
          ))}
        </div>
      )}
      <div class="row end">
        <Button label={isSame ? "Confirmed" : "Confirm address"} kind="primary" type="submit" isBusy={isBusy} isDisabled={isSame || url.trim() === ""} />
      </div>
      {question}
    </form>
  );
}

type Choice = Omit<Scheme, "kind"> & { kind: "apiKey" | "bearer" | "basic" | "oauth2" | "none" };

const LABELS: Record<Choice["kind"], string> = {
  apiKey: "API key",
  bearer: "Bearer token",
  basic: "Name and password",
  oauth2: "OAuth 2 sign-in",
  none: "No credentials",
};

function choicesOf(tab: Tab): Choice[] {
  const schemes = (tab.specification?.schemes ?? []).filter((scheme): scheme is Scheme & Choice => scheme.kind !== "unsupported");
  const bare = { description: null, in: null, parameter: null, authorizationUrl: null, tokenUrl: null, scopes: [] };
  const others: Choice[] = (["apiKey", "bearer", "basic", "oauth2", "none"] as const)
    .filter((kind) => !schemes.some((scheme) => scheme.kind === kind))
    .map((kind) => ({ ...bare, name: "", kind, in: kind === "apiKey" ? "header" : null, parameter: kind === "apiKey" ? "X-API-Key" : null }));
  return [...schemes, ...others];
}

function SignIn({ tab, connection }: { tab: Tab; connection: Connection | undefined }) {
  const choices = choicesOf(tab);
  const held = choices.findIndex((choice) => choice.kind === connection?.kind && connection.kind !== "none");
  const [chosen, setChosen] = useState(Math.max(held, 0));
  const choice = choices[chosen] as Choice;
  return (
    <div class="stack">
      <fieldset class="choices">
        <legend class="hidden">Way to sign in</legend>
        {choices.map((one, index) => (
          <label key={`${one.kind} ${one.name}`} class="choice">
            <input type="radio" name="scheme" checked={index === chosen} onChange={() => setChosen(index)} />
            <span>
              <strong>{LABELS[one.kind]}</strong> {one.name === "" ? null : <Badge tone="accent">{one.name}</Badge>}
              {one.description === null ? null : <span class="note">{one.description}</span>}
            </span>
          </label>
        ))}
      </fieldset>
      {choice.kind === "oauth2" ? <OAuthForm key={chosen} tab={tab} choice={choice} /> : <SecretForm key={chosen} tab={tab} choice={choice} />}
    </div>
  );
}

const KEEP_NOTE = "In a file that only you can read. Otherwise they are forgotten when studio ends.";

function SecretForm({ tab, choice }: { tab: Tab; choice: Choice }) {
  const [value, setValue] = useState("");
  const [account, setAccount] = useState("");
  const [place, setPlace] = useState<Place>(choice.in ?? "header");
  const [parameter, setParameter] = useState(choice.parameter ?? "");
  const [keep, setKeep] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [problem, setProblem] = useState<Problem>();
  const given = () => {
    if (choice.kind === "apiKey") return { kind: "apiKey", in: place, parameter, value, keep };
    if (choice.kind === "basic") return { kind: "basic", account, value, keep };
    return choice.kind === "none" ? { kind: "none" } : { kind: "bearer", value, keep };
  };
  const save = async () => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      const connection = await call<Connection>("PUT", `/tabs/${tab.id}/connection`, given());
      setValue("");
      renewFrame(tab.id);
      if (connection.state === "connected") tell("Connected.");
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  };
  const isSecret = choice.kind !== "none";
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void save();
      }}
    >
      {choice.kind === "apiKey" ? (
        <div class="columns">
          <Field label="Sent in">
            {(id) => (
              <select id={id} class="input" value={place} onChange={(event) => setPlace(event.currentTarget.value as Place)}>
                <option value="header">Header</option>
                <option value="query">Query</option>
                <option value="cookie">Cookie</option>
              </select>
            )}
          </Field>
          <TextField label="Name" value={parameter} isCode isRequired whenChanged={setParameter} />
        </div>
      ) : null}
      {choice.kind === "basic" ? <TextField label="User name" value={account} isRequired whenChanged={setAccount} /> : null}
      {isSecret ? (
        <TextField
          label={{ apiKey: "API key", bearer: "Token", basic: "Password", oauth2: "", none: "" }[choice.kind]}
          kind="password"
          value={value}
          isRequired
          note="It goes to the studio process and never to the interface."
          whenChanged={setValue}
        />
      ) : (
        <p class="soft">Requests are sent without credentials.</p>
      )}
      {isSecret ? <Check label="Keep the credentials on this machine" note={KEEP_NOTE} value={keep} whenChanged={setKeep} /> : null}
      {problem === undefined ? null : <ProblemNote problem={problem} />}
      <div class="row end">
        <Button label={isSecret ? "Save and test" : "Use without credentials"} kind="primary" type="submit" isBusy={isBusy} isDisabled={isSecret && value === ""} />
      </div>
    </form>
  );
}

function OAuthForm({ tab, choice }: { tab: Tab; choice: Choice }) {
  const [authorizationUrl, setAuthorizationUrl] = useState(choice.authorizationUrl ?? "");
  const [tokenUrl, setTokenUrl] = useState(choice.tokenUrl ?? "");
  const [clientId, setClientId] = useState("");
  const [clientSecret, setClientSecret] = useState("");
  const [scopes, setScopes] = useState(choice.scopes.map((scope) => scope.name));
  const [keep, setKeep] = useState(false);
  const [isBusy, setIsBusy] = useState(false);
  const [address, setAddress] = useState("");
  const [problem, setProblem] = useState<Problem>();
  const begin = async () => {
    setIsBusy(true);
    setProblem(undefined);
    try {
      const body = { authorizationUrl, tokenUrl, clientId, clientSecret: clientSecret === "" ? undefined : clientSecret, scopes, keep };
      const answer = await call<{ authorizationUrl: string }>("POST", `/tabs/${tab.id}/connection/oauth`, body);
      setAddress(answer.authorizationUrl);
      setClientSecret("");
      open(answer.authorizationUrl, "_blank", "noopener,noreferrer");
    } catch (error) {
      setProblem(problemOf(error));
    } finally {
      setIsBusy(false);
    }
  };
  const toggle = (name: string, isOn: boolean) => setScopes(isOn ? [...scopes, name] : scopes.filter((scope) => scope !== name));
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        void begin();
      }}
    >
      <p class="soft">
        Register an application with the API and give it this redirect address: <code class="code">{location.origin}/oauth/callback</code>
      </p>
      <TextField label="Client id" value={clientId} isRequired whenChanged={setClientId} />
      <TextField label="Client secret (only if the API gave you one)" kind="password" value={clientSecret} whenChanged={setClientSecret} />
      <details class="more">
        <summary>Addresses and scopes</summary>
        <div class="stack">
          <TextField label="Authorization address" kind="url" value={authorizationUrl} isRequired isCode whenChanged={setAuthorizationUrl} />
          <TextField label="Token address" kind="url" value={tokenUrl} isRequired isCode whenChanged={setTokenUrl} />
          {choice.scopes.map((scope) => (
            <Check key={scope.name} label={scope.name} note={scope.description === "" ? undefined : scope.description} value={scopes.includes(scope.name)} whenChanged={(isOn) => toggle(scope.name, isOn)} />
          ))}
        </div>
      </details>
      <Check label="Keep the credentials on this machine" note={KEEP_NOTE} value={keep} whenChanged={setKeep} />
      {problem === undefined ? null : <ProblemNote problem={problem} />}
      {address === "" ? null : (
        <p class="note" role="status">
          Finish the sign-in in the new window. If none opened, <a href={address} target="_blank" rel="noopener noreferrer">open the sign-in page</a>.
        </p>
      )}
      <div class="row end">
        <Button label="Sign in" kind="primary" type="submit" isBusy={isBusy} isDisabled={clientId === "" || authorizationUrl === "" || tokenUrl === ""} />
      </div>
    </form>
  );
}

interface StatusProps {
  studio: Studio;
  tab: Tab;
  connection: Connection | undefined;
  isConfirmed: boolean;
}

function Status({ studio, tab, connection, isConfirmed }: StatusProps) {
  const [path, setPath] = useState("");
  const [isBusy, setIsBusy] = useState(false);
  const state = STATES[connection?.state ?? "disconnected"];
  const others = (connection?.tabs ?? []).filter((id) => id !== tab.id).flatMap((id) => studio.told.tabs.find((one) => one.id === id)?.title ?? []);
  const test = () => {
    setIsBusy(true);
    void testConnection(tab, path === "" ? undefined : path).finally(() => setIsBusy(false));
  };
  return (
    <div class="stack">
      <div class="card status" role="status">
        <p class="row">
          <Dot tone={state.tone} isBusy={connection?.state === "connecting"} />
          <strong>{state.label}</strong>
          <span class="grow" />
          {connection?.responseTime === null || connection === undefined ? null : <span class="note">{connection.responseTime} ms</span>}
        </p>
        {connection?.message === null || connection === undefined ? null : <p class="soft">{connection.message}</p>}
        {connection === undefined || connection.checkedAt === null ? null : <p class="note">Checked at {timeText(connection.checkedAt)}</p>}
        {connection === undefined || connection.expiresAt === null ? null : <p class="note">Signed in until {timeText(connection.expiresAt)}</p>}
        {others.length === 0 ? null : <p class="note">Shared with {others.join(", ")}</p>}
      </div>
      <TextField label="Path of the test request (optional)" value={path} isCode placeholder="/status" whenChanged={setPath} />
      <div class="row end">
        {connection === undefined || connection.kind === "none" ? null : (
          <Button label="Forget credentials" icon="trash" kind="danger" whenPressed={() => void attempt(call("DELETE", `/tabs/${tab.id}/connection`))} />
        )}
        <Button label="Test the connection" isBusy={isBusy} isDisabled={!isConfirmed} whenPressed={test} />
      </div>
    </div>
  );
}
