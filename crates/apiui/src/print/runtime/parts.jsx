// ---- Parts: the small pieces that every screen is made of ----

function Button({ label, kind, isSmall, isBusy, signature, whenPressed, submits }) {
  const classes = `dragoman-button dragoman-${kind ?? "usual"}${isSmall === true ? " dragoman-small" : ""}`;
  return (
    <button type={submits === true ? "submit" : "button"} className={classes} disabled={isBusy === true} data-operation={signature} onClick={() => whenPressed?.()}>
      {label}
    </button>
  );
}

function Badge({ text, tone }) {
  return <span className={`dragoman-badge dragoman-${tone ?? "plain"}`}>{text}</span>;
}

const TONES = [
  ["good", /^(active|available|success|succeeded|ok|paid|open|enabled|completed?|approved|published|healthy|online|running|done|delivered|yes)$/i],
  ["bad", /^(failed|failure|error|cancell?ed|rejected|deleted|disabled|closed|overdue|inactive|offline|blocked|expired|sold)$/i],
  ["warn", /^(pending|waiting|draft|processing|warning|queued|paused|unknown|placed|in.?progress|scheduled)$/i],
];

/** Flags that say something bad when they are true. */
const BAD_FLAG = /(^|[^a-z])(is_?)?(deleted|removed|disabled|archived|blocked|banned|expired|failed|suspended|locked|revoked|cancell?ed|rejected|deprecated|overdue|inactive|hidden|spam|closed|broken|invalid)/i;

function toneOf(value) {
  const found = TONES.find(([, pattern]) => pattern.test(textOf(value)));
  return found ? found.at(0) : "plain";
}

function Verb({ operation }) {
  const word = operation.queryText === undefined ? operation.method : operation.signature.split(" ").at(0);
  const tone = operation.destroys === true ? "bad" : operation.writes === true ? "warn" : "good";
  return <span className={`dragoman-verb dragoman-${tone}`}>{word}</span>;
}

function LoadingState({ text }) {
  return (
    <div className="dragoman-state" role="status" aria-live="polite" data-testid="loading">
      <span className="dragoman-spinner" aria-hidden="true" />
      <span>{text ?? "Loading…"}</span>
    </div>
  );
}

function EmptyState({ title, text, children }) {
  return (
    <div className="dragoman-state" data-testid="empty">
      <strong>{title}</strong>
      {text ? <p>{text}</p> : null}
      {children}
    </div>
  );
}

/** What went wrong and what can be done; a refused sign-in leads to the sign-in panel. */
function FailureState({ ui, operation, state, whenRetried }) {
  const isRefused = state.status === 401 || state.status === 403;
  if (isRefused) {
    return (
      <div className="dragoman-state" role="alert" data-testid="sign-in">
        <strong>{state.status === 401 ? "Sign in to see this" : "This is not allowed with these credentials"}</strong>
        <p>{state.message || "The API asks for credentials that it knows."}</p>
        <div className="dragoman-actions">
          {PLAN.auth && !ui.isHosted ? <Button label="Sign in" kind="primary" whenPressed={() => ui.askSignIn()} /> : null}
          <Button label="Try again" signature={operation.signature} whenPressed={() => whenRetried()} />
        </div>
      </div>
    );
  }
  const title = state.status === 0 ? "The API could not be reached" : state.status === 404 ? "Not found" : state.status === 412 ? "Somebody else changed this record meanwhile" : `The API answered with an error (${state.status})`;
  const advice = state.status === 412 ? "Nothing was saved. Open the record again to see its present state." : state.status === 0 ? "Check the network, the server that is chosen above, and that the API allows requests from this page." : "";
  return (
    <div className="dragoman-state" role="alert" data-testid="failure">
      <strong>{title}</strong>
      <p>{state.message}</p>
      {advice ? <p>{advice}</p> : null}
      <Button label="Try again" signature={operation.signature} whenPressed={() => whenRetried()} />
    </div>
  );
}

/** One value by the kind of its column. */
function Cell({ value, display, field }) {
  if (value === null || value === undefined || value === "") return <span className="dragoman-hint">–</span>;
  if (display === "choice") return <Badge text={textOf(value)} tone={toneOf(value)} />;
  if (display === "boolean" || typeof value === "boolean") return <Badge text={value === true ? "Yes" : "No"} tone={value !== true ? "plain" : BAD_FLAG.test(String(field ?? "")) ? "bad" : "good"} />;
  const isMoment = typeof value === "string" && /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[-+][0-9]{2}:?[0-9]{2})$/i.test(value);
  if (display === "text" && isMoment) {
    return (
      <time dateTime={value} title={value}>
        {shownText(value, "datetime")}
      </time>
    );
  }
  if (display === "date" || display === "datetime") return <time dateTime={textOf(value)}>{shownText(value, display)}</time>;
  const address = display === "email" ? safeUrl(`mailto:${value}`) : typeof value === "string" ? safeUrl(value) : undefined;
  if (address !== undefined) {
    return (
      <a href={safeUrl(address)} target="_blank" rel="noopener noreferrer">
        {textOf(value)}
      </a>
    );
  }
  const text = textOf(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

/** Any value, nested as it is. */
function DataView({ value, depth, field }) {
  if (value instanceof Blob) return <span>{jsonOf(value)}</span>;
  if (!isNested(value)) return <Cell value={value} display="text" field={field} />;
  if (depth > 3) return <pre className="dragoman-raw dragoman-code">{jsonOf(value)}</pre>;
  if (Array.isArray(value)) {
    if (value.length === 0) return <span className="dragoman-hint">none</span>;
    if (value.every((item) => isNested(item) && !Array.isArray(item))) return <DataTable rows={value} depth={depth} />;
    return (
      <ul>
        {value.slice(0, 200).map((item, index) => (
          <li key={index}>
            <DataView value={item} depth={depth + 1} />
          </li>
        ))}
      </ul>
    );
  }
  return (
    <dl className="dragoman-pairs">
      {ownEntries(value).map(([name, inner]) => (
        <Fragment key={name}>
          <dt>{labelOf(name)}</dt>
          <dd>
            <DataView value={inner} depth={depth + 1} field={name} />
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

/** A list of objects without a plan of its own: the columns come from the rows. */
function DataTable({ rows, depth }) {
  const shown = rows.slice(0, 100);
  const names = [...new Set(shown.slice(0, 20).flatMap((row) => Object.keys(row)))].slice(0, depth > 1 ? 6 : 12);
  return (
    <div className="dragoman-scroll">
      <table className="dragoman-table">
        <thead>
          <tr>
            {names.map((name) => (
              <th key={name} scope="col">
                <span>{labelOf(name)}</span>
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {shown.map((row, index) => (
            <tr key={index}>
              {names.map((name) => (
                <td key={name}>
                  <span className="dragoman-celllabel" aria-hidden="true">
                    {labelOf(name)}
                  </span>
                  <Cell value={own(row, name)} display="text" field={name} />
                </td>
              ))}
            </tr>
          ))}
        </tbody>
      </table>
      {rows.length > shown.length ? <p className="dragoman-hint">{`The first ${shown.length} of ${rows.length} are shown.`}</p> : null}
    </div>
  );
}
