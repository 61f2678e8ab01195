// The debug console: requests of the interface, what its frame did, what the child process wrote.
import { useEffect, useMemo, useState } from "preact/hooks";
import { attempt } from "./actions";
import { call } from "./api";
import { sizeText } from "./files";
import { Badge, Button, Empty } from "../../../web/common/parts";
import type { Tone } from "../../../web/common/parts";
import { update } from "./store";
import type { Studio } from "./store";
import type { ConsoleEntry, Tab } from "./types";

const KINDS = { api: "Request", cli: "Process", frame: "Frame", studio: "Studio" };
const MOST_SHOWN = 300;

function isShown(entry: ConsoleEntry, tab: Tab, kind: string, status: string, isEveryTab: boolean, search: string) {
  if (!isEveryTab && entry.tab !== null && entry.tab !== tab.id) return false;
  if (kind !== "" && entry.kind !== kind) return false;
  if (status !== "") {
    if (entry.kind !== "api") return status === "failed" && entry.level !== "info";
    const code = entry.status ?? 0;
    if (status === "failed" ? code > 0 && code < 400 : String(code).charAt(0) !== status) return false;
  }
  if (search === "") return true;
  const text = [entry.message, entry.method, entry.url, entry.requestBody, entry.responseBody].join(" ");
  return text.toLowerCase().includes(search.toLowerCase());
}

export function Console({ studio, tab }: { studio: Studio; tab: Tab }) {
  const [kind, setKind] = useState("");
  const [status, setStatus] = useState("");
  const [search, setSearch] = useState("");
  const [isEveryTab, setIsEveryTab] = useState(false);
  useEffect(() => {
    void attempt(call<{ entries: ConsoleEntry[] }>("GET", "/console?after=0")).then((answer) => {
      if (answer === undefined) return;
      update((before) => {
        const newest = answer.entries[answer.entries.length - 1]?.id ?? 0;
        return { entries: [...answer.entries, ...before.entries.filter((entry) => entry.id > newest)] };
      });
    });
  }, []);
  const entries = useMemo(
    () => studio.entries.filter((entry) => isShown(entry, tab, kind, status, isEveryTab, search)).slice(-MOST_SHOWN).reverse(),
    [studio.entries, tab.id, kind, status, isEveryTab, search],
  );
  return (
    <section class="console" aria-label="Debug console">
      <div class="console-head">
        <h2>Console</h2>
        <input
          class="input small"
          type="search"
          aria-label="Search the console"
          placeholder="Search"
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
        <select class="input small" aria-label="Kind of entries" value={kind} onChange={(event) => setKind(event.currentTarget.value)}>
          <option value="">Everything</option>
          <option value="api">Requests</option>
          <option value="frame">Frame</option>
          <option value="cli">Process</option>
          <option value="studio">Studio</option>
        </select>
        <select class="input small" aria-label="Status" value={status} onChange={(event) => setStatus(event.currentTarget.value)}>
          <option value="">Any status</option>
          <option value="2">2xx</option>
          <option value="3">3xx</option>
          <option value="4">4xx</option>
          <option value="5">5xx</option>
          <option value="failed">Failed</option>
        </select>
        <label class="check small">
          <input type="checkbox" checked={isEveryTab} onChange={(event) => setIsEveryTab(event.currentTarget.checked)} />
          <span>All tabs</span>
        </label>
        <span class="grow" />
        <Button label="Clear" icon="trash" kind="quiet" whenPressed={() => void attempt(call("DELETE", "/console"))} />
        <Button label="Close the console" icon="close" kind="quiet" isIconOnly whenPressed={() => update({ isConsoleShown: false })} />
      </div>
      <div class="console-body" role="region" aria-label="Entries" tabIndex={0}>
        {entries.length === 0 ? (
          <Empty
            icon="terminal"
            title={studio.entries.length === 0 ? "Nothing yet" : "Nothing matches"}
            text={studio.entries.length === 0 ? "Requests of the interface appear here, secrets masked." : "Change the search or the filters."}
          />
        ) : (
          <ul class="entries">
            {entries.map((entry) => (
              <Entry key={entry.id} entry={entry} />
            ))}
          </ul>
        )}
      </div>
    </section>
  );
}

function toneOf(entry: ConsoleEntry): Tone {
  if (entry.kind !== "api") return entry.level === "error" ? "bad" : entry.level === "warning" ? "warn" : "neutral";
  const status = entry.status ?? 0;
  return status === 0 || status >= 500 ? "bad" : status >= 400 ? "warn" : "good";
}

function Entry({ entry }: { entry: ConsoleEntry }) {
  const time = new Date(entry.time).toLocaleTimeString(undefined, { hour12: false });
  if (entry.kind !== "api")
    return (
      <li class="entry">
        <div class="entry-line">
          <time>{time}</time>
          <Badge tone={toneOf(entry)}>{KINDS[entry.kind]}</Badge>
          <span class="entry-text">{entry.message}</span>
        </div>
      </li>
    );
  return (
    <li class="entry">
      <details>
        <summary class="entry-line">
          <time>{time}</time>
          <Badge tone={toneOf(entry)}>{entry.status ?? "failed"}</Badge>
          <strong>{entry.method}</strong>
          <span class="entry-text">{entry.url}</span>
          <span class="entry-figures">
            {entry.duration === undefined ? "" : `${Math.round(entry.duration)} ms`}
            {entry.size === undefined ? "" : ` · ${sizeText(entry.size)}`}
          </span>
        </summary>
        <div class="entry-parts">
          {entry.message === "" || typeof entry.status === "number" ? null : <p>{entry.message}</p>}
          <EntryPart title="Request" headers={entry.requestHeaders} body={entry.requestBody} />
          <EntryPart title="Response" headers={entry.responseHeaders} body={entry.responseBody} />
        </div>
      </details>
    </li>
  );
}

function EntryPart({ title, headers = [], body }: { title: string; headers?: [string, string][]; body?: string | null }) {
  return (
    <div>
      <h3>{title}</h3>
      {headers.length === 0 ? <p class="note">No headers</p> : null}
      <dl class="headers">
        {headers.map(([name, value], index) => (
          <div key={`${index} ${name}`}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {body === null || body === undefined || body === "" ? null : (
        <pre class="code" tabIndex={0} aria-label={`Body of the ${title.toLowerCase()}`}>
          {prettyBody(body)}
        </pre>
      )}
    </div>
  );
}

function prettyBody(body: string) {
  try {
    return JSON.stringify(JSON.parse(body), null, 2);
  } catch {
    return body;
  }
}
