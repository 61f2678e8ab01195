// ---- Forms: one control per kind of input, with its label, hint and problem ----

/** A labelled control and everything that belongs to it. */
function Field({ input, draft, place, problems, whenChanged, caption }) {
  const id = useId();
  const problem = problems.find((one) => one.place === place);
  const label = caption ?? (input.name === "" ? "Value" : labelOf(input.name));
  if (["object", "list", "map", "variant"].includes(input.kind)) {
    return <GroupField input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} label={label} />;
  }
  return (
    <div className="dragoman-field">
      <label htmlFor={id}>
        {label}
        {input.required === true ? <span className="dragoman-need"> *</span> : null}
      </label>
      <Control id={id} input={input} draft={draft} isWrong={problem !== undefined} whenChanged={(next) => whenChanged(next)} />
      <DraftState input={input} draft={draft} label={label} whenChanged={(next) => whenChanged(next)} />
      {input.note ? (
        <span className="dragoman-hint" id={`dragoman-hint-${id}`}>
          {input.note}
        </span>
      ) : null}
      {problem ? (
        <span className="dragoman-problem" role="alert" id={`dragoman-problem-${id}`}>
          {problem.message}
        </span>
      ) : null}
    </div>
  );
}

/** Null, absent and empty are three things: which one a control without text stands for, and how to choose another. */
function DraftState({ input, draft, label, whenChanged }) {
  if (input.bare === true) return null;
  const isText = TEXT_KINDS.includes(input.kind);
  const isBlank = draft === "" || draft === EMPTY_TEXT;
  const state = draft === null ? "null" : isBlank && isText ? "Empty text" : undefined;
  const canBeNull = input.nullable === true && draft !== null;
  const canBeAbsent = input.required !== true && draft !== undefined;
  if (state === undefined && (draft === undefined || !(canBeNull || canBeAbsent))) return null;
  return (
    <span className="dragoman-states">
      {state === undefined ? null : <Badge text={state} />}
      {canBeNull ? <StateButton text="Set to null" label={label} whenPressed={() => whenChanged(null)} /> : null}
      {canBeAbsent ? <StateButton text="Leave out" label={label} whenPressed={() => whenChanged(undefined)} /> : null}
      {draft === null && isText ? <StateButton text="Set to empty text" label={label} whenPressed={() => whenChanged(EMPTY_TEXT)} /> : null}
    </span>
  );
}

function StateButton({ text, label, whenPressed }) {
  return (
    <button type="button" className="dragoman-textbutton" aria-label={`${text}: ${label}`} onClick={() => whenPressed()}>
      {text}
    </button>
  );
}

/** The type of a control, and which drafts it can show as they are. */
const CONTROL_TYPES = [
  ["number", "number", /^-?[0-9]+(\.[0-9]+)?$/],
  ["integer", "number", /^-?[0-9]+$/],
  ["date", "date", /^[0-9]{4}-[0-9]{2}-[0-9]{2}$/],
  ["time", "time", /^[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]{1,3})?)?$/],
  ["email", "email", /^/],
  ["secret", "password", /^/],
  ["url", "url", /^/],
];

/** A draft that its usual control cannot show as it is gets a plain text control, so that nothing is lost. */
function controlType(input, text) {
  const found = CONTROL_TYPES.find(([kind]) => kind === input.kind);
  return found === undefined || (text !== "" && !found.at(2).test(text)) ? "text" : found.at(1);
}

/** A moment in parts: what a control for date and time shows, and the zone. */
function momentParts(text) {
  const found = /^([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt ]([0-9]{2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]{1,3})?)?)([Zz]|[-+][0-9]{2}:?[0-9]{2})?$/.exec(text);
  return found === null ? undefined : { local: `${found.at(1)}T${found.at(2)}`, zone: found.at(3) ?? "" };
}

/** The reader's zone at a moment, such as +02:00. */
function zoneOf(local) {
  const date = new Date(local);
  const minutes = Number.isNaN(date.getTime()) ? 0 : -date.getTimezoneOffset();
  const two = (number) => String(Math.trunc(number)).padStart(2, "0");
  return minutes === 0 ? "Z" : `${minutes < 0 ? "-" : "+"}${two(Math.abs(minutes) / 60)}:${two(Math.abs(minutes) % 60)}`;
}

function MomentControl({ id, text, described, isWrong, needed, whenChanged }) {
  const parts = momentParts(text) ?? { local: "", zone: undefined };
  const zones = [...new Set([parts.zone, zoneOf(parts.local), "Z", ""])].filter((zone) => zone !== undefined);
  const write = (local, zone) => whenChanged(local === "" ? "" : `${local}${local.length === 16 ? ":00" : ""}${zone ?? zoneOf(local)}`);
  return (
    <div className="dragoman-row">
      <input id={id} type="datetime-local" step="any" className="dragoman-input" value={parts.local} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => write(event.target.value, parts.zone)} />
      <select className="dragoman-input dragoman-zone" aria-label="Time zone" value={parts.zone ?? zoneOf(parts.local)} onChange={(event) => write(parts.local, event.target.value)}>
        {zones.map((zone) => (
          <option key={zone} value={zone}>
            {zone === "" ? "No zone" : zone === "Z" ? "UTC" : zone}
          </option>
        ))}
      </select>
    </div>
  );
}

function Control({ id, input, draft, isWrong, whenChanged }) {
  const described = `${input.note ? `dragoman-hint-${id}` : ""}${isWrong ? ` dragoman-problem-${id}` : ""}`.trim() || undefined;
  const needed = input.required === true;
  const text = typeof draft === "string" ? draft : "";
  if (input.kind === "boolean") {
    return (
      <select id={id} className="dragoman-input" value={typeof draft === "boolean" ? String(draft) : ""} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value === "" ? undefined : event.target.value === "true")}>
        <option value="">–</option>
        <option value="true">Yes</option>
        <option value="false">No</option>
      </select>
    );
  }
  if (input.kind === "choice") {
    const texts = input.choices.map((choice) => exactJsonText(choice));
    const unlisted = text === "" || texts.includes(text) ? [] : [text];
    return (
      <select id={id} className="dragoman-input" value={text} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value === "" ? undefined : event.target.value)}>
        <option value="">–</option>
        {[...texts, ...unlisted].map((one) => (
          <option key={one} value={one}>
            {choiceLabel(parseJson(one))}
          </option>
        ))}
      </select>
    );
  }
  if (input.kind === "multiline" || input.kind === "json") {
    return <textarea id={id} className={input.kind === "json" ? "dragoman-input dragoman-code" : "dragoman-input"} rows={input.kind === "json" ? 5 : 4} value={text} placeholder={input.kind === "json" ? "JSON" : input.example} spellCheck={input.kind !== "json"} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value)} />;
  }
  if (input.kind === "file") {
    return <input id={id} type="file" className="dragoman-input" aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.files?.[0])} />;
  }
  if (input.kind === "datetime" && (text === "" || momentParts(text) !== undefined)) {
    return <MomentControl id={id} text={text} described={described} isWrong={isWrong} needed={needed} whenChanged={(next) => whenChanged(next)} />;
  }
  const type = controlType(input, text);
  return <input id={id} type={type} className="dragoman-input" value={text} placeholder={input.example} step={type === "number" || type === "time" ? "any" : undefined} autoComplete={type === "password" ? "new-password" : "off"} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value)} />;
}

/** A choice as people read it: `in_progress` → `In progress`. */
function choiceLabel(value) {
  if (value === "") return "(empty)";
  return typeof value === "string" && /^[a-z]+([_-][a-z]+)+$|^[A-Z]+(_[A-Z]+)+$/.test(value) ? labelOf(value.toLowerCase()) : textOf(value);
}

/** A control that holds others, in a box with its name. */
function GroupField({ input, draft, place, problems, whenChanged, label }) {
  const problem = problems.find((one) => one.place === place);
  const id = useId();
  return (
    <div className="dragoman-field" role="group" aria-labelledby={id}>
      <span className="dragoman-legend" id={id}>
        {label}
        {input.required === true ? <span className="dragoman-need"> *</span> : null}
      </span>
      {input.note ? <span className="dragoman-hint">{input.note}</span> : null}
      <GroupBody input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} label={label} />
      {problem ? (
        <span className="dragoman-problem" role="alert">
          {problem.message}
        </span>
      ) : null}
    </div>
  );
}

function GroupBody({ input, draft, place, problems, whenChanged, label }) {
  if (typeof draft === "string") return <Control id={`dragoman-group-${place}`} input={{ name: input.name, kind: "json" }} draft={draft} isWrong={false} whenChanged={(next) => whenChanged(next)} />;
  if (draft === undefined || draft === null) {
    const begin = { name: "", kind: input.kind, shape: input.shape, fields: input.fields, alternatives: input.alternatives };
    return (
      <div className="dragoman-states">
        {draft === null ? <Badge text="null" /> : null}
        <Button label={`Add ${label.toLowerCase()}`} isSmall whenPressed={() => whenChanged(["list", "map"].includes(input.kind) ? [newEntry(input, "")] : startDraft(begin, true))} />
        {draft === null && input.required !== true ? <StateButton text="Leave out" label={label} whenPressed={() => whenChanged(undefined)} /> : null}
        {draft === undefined && input.nullable === true ? <StateButton text="Set to null" label={label} whenPressed={() => whenChanged(null)} /> : null}
      </div>
    );
  }
  return (
    <div className="dragoman-box">
      <GroupFields input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} label={label} />
      <div className="dragoman-states">
        {input.required === true ? null : <StateButton text="Leave out" label={label} whenPressed={() => whenChanged(undefined)} />}
        {input.nullable === true ? <StateButton text="Set to null" label={label} whenPressed={() => whenChanged(null)} /> : null}
      </div>
    </div>
  );
}

function GroupFields({ input, draft, place, problems, whenChanged, label }) {
  if (input.kind === "list") return <ListField input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} label={label} />;
  if (input.kind === "map") return <MapField input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} />;
  if (input.kind === "object") return <ObjectFields input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} />;
  return <VariantField input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} />;
}

function ObjectFields({ input, draft, place, problems, whenChanged }) {
  return fieldsOf(input).map((field) => <Field key={field.name} input={field} draft={own(draft, field.name)} place={`${place}/${field.name}`} problems={problems} whenChanged={(next) => whenChanged(withOwn(draft, field.name, next))} />);
}

function ListField({ input, draft, place, problems, whenChanged, label }) {
  const item = itemOf(input);
  return (
    <>
      {draft.map((entry, index) => (
        <div key={index} className="dragoman-row">
          <div className="dragoman-grow">
            <Field input={item} draft={entry.draft} place={`${place}/${index}`} problems={problems} caption={`${label} ${index + 1}`} whenChanged={(next) => whenChanged(draft.map((old, at) => (at === index ? withOwn(old, "draft", next) : old)))} />
          </div>
          <Button label="Remove" kind="quiet" isSmall whenPressed={() => whenChanged(draft.filter((old, at) => at !== index))} />
        </div>
      ))}
      <div>
        <Button label="Add entry" isSmall whenPressed={() => whenChanged([...draft, newEntry(input, "")])} />
      </div>
    </>
  );
}

function MapField({ input, draft, place, problems, whenChanged }) {
  const item = itemOf(input);
  const changed = (index, name, next) => whenChanged(draft.map((old, at) => (at === index ? withOwn(old, name, next) : old)));
  return (
    <>
      {draft.map((entry, index) => (
        <div key={index} className="dragoman-row">
          <Field input={{ name: "name", kind: "text", required: true }} draft={entry.name} place="" problems={[]} whenChanged={(next) => changed(index, "name", next)} />
          <div className="dragoman-grow">
            <Field input={item} draft={entry.draft} place={`${place}/${index}`} problems={problems} whenChanged={(next) => changed(index, "draft", next)} />
          </div>
          <Button label="Remove" kind="quiet" isSmall whenPressed={() => whenChanged(draft.filter((old, at) => at !== index))} />
        </div>
      ))}
      <div>
        <Button label="Add entry" isSmall whenPressed={() => whenChanged([...draft, newEntry(input, "")])} />
      </div>
    </>
  );
}

function VariantField({ input, draft, place, problems, whenChanged }) {
  const id = useId();
  const chosen = input.alternatives.at(draft.chosen);
  const inner = chosen.input;
  const wanted = { name: "", kind: inner.kind, shape: inner.shape, fields: inner.fields, choices: inner.choices, item: inner.item, alternatives: inner.alternatives, discriminator: inner.discriminator, required: true };
  return (
    <>
      <div className="dragoman-field">
        <label htmlFor={id}>Kind</label>
        <select id={id} className="dragoman-input" value={String(draft.chosen)} onChange={(event) => whenChanged(newVariant(input, Number(event.target.value)))}>
          {input.alternatives.map((one, index) => (
            <option key={index} value={String(index)}>
              {one.label}
            </option>
          ))}
        </select>
      </div>
      {inner.kind === "object" && typeof draft.draft !== "string" ? <ObjectFields input={inner} draft={draft.draft ?? {}} place={`${place}/${draft.chosen}`} problems={problems} whenChanged={(next) => whenChanged(withOwn(draft, "draft", next))} /> : <Field input={wanted} draft={draft.draft} place={`${place}/${draft.chosen}`} problems={problems} whenChanged={(next) => whenChanged(withOwn(draft, "draft", next))} />}
    </>
  );
}

/**
 * The inputs and the body of an operation, checked before it is called. `edit` is given where an existing item is
 * changed: `{ item, base, etag, isWhole, reread }`, of which `base` is the object that the API sent.
 */
function OperationForm({ ui, operation, known, edit, label, whenDone, whenCancelled, isPlain, hides }) {
  const [starts] = useState(() => startDrafts(operation, known ?? {}));
  const [drafts, setDrafts] = useState(starts);
  const [bodyStart] = useState(() => startBody(operation, edit?.base));
  const [bodyDraft, setBodyDraft] = useState(bodyStart);
  const [problems, setProblems] = useState([]);
  const [state, setState] = useState({ phase: "waiting" });
  const [question, setQuestion] = useState("");
  const summary = useRef(null);
  const isBusy = state.phase === "loading";
  const isPut = operation.method === "PUT" && operation.queryText === undefined;
  const form = operation.body;
  const show = (found) => {
    setProblems(found);
    if (found.length > 0) summary.current?.focus();
    return found.length === 0;
  };
  const send = (base) => {
    const body = form === undefined ? undefined : edit === undefined ? valueOf(form.input, bodyDraft) : editedBody(operation, base, bodyStart, bodyDraft);
    const call = buildCall(operation, drafts, body, edit === undefined ? undefined : { item: edit.item, starts, known: edit.known });
    const headers = edit?.etag === undefined ? call.headers : withAll({ "If-Match": edit.etag }, call.headers);
    if (edit !== undefined && !isPut && hasNoChanges(operation, body, starts, drafts)) {
      setState({ phase: "waiting" });
      ui.tell("Nothing was changed, so nothing was sent.");
      whenCancelled?.();
      return;
    }
    ui.perform(operation, { path: call.path, query: call.query, headers, body: call.body }, new AbortController()).then((next) => {
      setState(next);
      if (next.phase === "done") whenDone?.(next);
      else setProblems(fieldProblems(next.data));
    });
  };
  const run = (isSure) => {
    const found = [
      ...(operation.inputs ?? []).flatMap((input) => inputProblems(input, own(drafts, inputKey(input)), edit === undefined ? undefined : own(starts, inputKey(input)))),
      ...(form === undefined ? [] : problemsOf(form.input, bodyDraft, "body", edit?.base === undefined ? undefined : bodyStart, edit !== undefined && !isPut)),
    ];
    if (!show(found)) return;
    setQuestion("");
    if (isPut && edit !== undefined && edit.isWhole !== true && isSure !== true) {
      setQuestion("The API cannot be asked for all of this record. Saving replaces it with what this form holds: fields that are not shown may be lost.");
      return;
    }
    setState({ phase: "loading" });
    if (!isPut || form === undefined || edit?.reread === undefined || edit.etag !== undefined) {
      send(edit?.base);
      return;
    }
    edit.reread().then((base) => {
      if (base === undefined) setState({ phase: "failed", status: 0, message: "The record could not be read again before saving, so nothing was sent." });
      else if (isSure !== true && isChangedElsewhere(form.input, edit.base, base, bodyStart, bodyDraft)) {
        setState({ phase: "waiting" });
        setQuestion("Somebody else changed a field that you changed too. Saving replaces their value with yours.");
      } else send(base);
    });
  };
  const inputs = (operation.inputs ?? []).filter((input) => !(hides ?? []).includes(input.name));
  return (
    <form className="dragoman-form" noValidate onSubmit={(event) => {
      event.preventDefault();
      run();
    }}>
      <div ref={summary} tabIndex={-1} role="alert" className={problems.length > 0 ? "dragoman-problem" : "dragoman-hidden"}>
        {problems.length > 0 ? `${problems.length === 1 ? "One entry needs" : `${problems.length} entries need`} attention.` : ""}
      </div>
      {form === undefined ? null : <BodyFields form={form} draft={bodyDraft} problems={problems} whenChanged={(next) => setBodyDraft(next)} />}
      {inputs.map((input) => (
        <Field key={inputKey(input)} input={withOwn(input, "bare", input.place !== "variable")} draft={own(drafts, inputKey(input))} place={inputKey(input)} problems={problems} whenChanged={(next) => setDrafts((before) => withOwn(before, inputKey(input), next))} />
      ))}
      {needsSignIn(operation, ui.held) && PLAN.auth && !ui.isHosted ? (
        <p className="dragoman-hint">
          This needs credentials. <Button label="Sign in" kind="quiet" isSmall whenPressed={() => ui.askSignIn()} />
        </p>
      ) : null}
      {question === "" ? null : (
        <div className="dragoman-confirm" role="alertdialog" aria-label="Confirm saving">
          <span className="dragoman-grow">{question}</span>
          <Button label="Save anyway" kind="danger" signature={operation.signature} whenPressed={() => run(true)} />
          <Button label="Go on editing" whenPressed={() => setQuestion("")} />
        </div>
      )}
      <div className="dragoman-actions">
        <Button label={isBusy ? "Working…" : label} kind={operation.destroys === true ? "danger" : "primary"} submits isBusy={isBusy} signature={operation.signature} />
        {whenCancelled === undefined ? null : <Button label="Cancel" whenPressed={() => whenCancelled()} />}
      </div>
      {state.phase === "failed" ? <FailureState ui={ui} operation={operation} state={state} whenRetried={() => run()} /> : null}
      {state.phase === "done" && isPlain !== true ? <ResultView ui={ui} operation={operation} state={state} /> : null}
    </form>
  );
}

function startBody(operation, value) {
  if (operation.body === undefined) return undefined;
  const { input } = operation.body;
  if (value !== undefined) return draftOf(input, value);
  return startDraft(input, operation.body.required === true || ["object", "variant"].includes(input.kind));
}

/** Required fields by which an API tells versions of a record apart: a patch carries them unchanged. */
const VERSION_FIELD = /^(version|_?etag|_?rev|revision|resource_?version|lock_?version|row_?version)$/i;

/** The body of an edit: the whole record for PUT, the changes for everything else; without what only the server sets. */
function editedBody(operation, base, start, draft) {
  const { input, contentType, serverSet } = operation.body;
  const next = withoutPaths(mergedValue(input, base, start, draft), serverSet ?? []);
  const isObject = (value) => isNested(value) && !Array.isArray(value);
  if (operation.method === "PUT" || !isObject(base) || !isObject(next)) return next;
  const before = withoutPaths(base, serverSet ?? []);
  const changes = changesOf(before, next, /merge-patch/.test(contentType));
  if (/json-patch/.test(contentType)) return patchSteps(before, next, changes);
  const versions = fieldsOf(input).filter((field) => field.required === true && VERSION_FIELD.test(field.name) && own(base, field.name) !== undefined);
  return ownEntries(changes).length === 0 ? changes : versions.reduce((all, field) => (own(all, field.name) === undefined ? withOwn(all, field.name, own(base, field.name)) : all), changes);
}

/** The steps of a JSON Patch. */
function patchSteps(before, next, changes) {
  return ownEntries(changes).map(([name, value]) => {
    const path = `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
    if (own(next, name) === undefined) return { op: "remove", path };
    return { op: own(before, name) === undefined ? "add" : "replace", path, value };
  });
}

function hasNoChanges(operation, body, starts, drafts) {
  const isSame = (operation.inputs ?? []).every((input) => own(starts, inputKey(input)) === own(drafts, inputKey(input)));
  return isSame && (operation.body === undefined ? operation.queryText !== undefined : isNested(body) && (Array.isArray(body) ? body.length === 0 : ownEntries(body).length === 0));
}

/** Whether a field that is edited here has another value now than when the form was opened. */
function isChangedElsewhere(input, before, now, start, draft) {
  if (input.kind !== "object" || typeof draft === "string") return draft !== start && !isSameValue(before, now);
  return fieldsOf(input).some((field) => own(start, field.name) !== own(draft, field.name) && !isSameValue(own(before, field.name), own(now, field.name)));
}

/** What an error body says about single fields, in the forms that are usual. */
function fieldProblems(data) {
  const texts = (value) => (Array.isArray(value) ? value : [value]).map((one) => own(one, "message") ?? own(one, "msg") ?? one).filter((one) => typeof one === "string");
  const lists = ["errors", "detail", "details", "violations", "fieldErrors", "field_errors", "invalidParams", "invalid-params"].map((name) => own(data, name));
  return lists.flatMap((found) => {
    if (!Array.isArray(found)) return ownEntries(found).flatMap(([name, value]) => texts(value).map((message) => ({ place: `body/${name.replaceAll(".", "/")}`, message })));
    return found.flatMap((one) => {
      const at = own(one, "loc") ?? own(one, "field") ?? own(one, "path") ?? own(one, "pointer") ?? own(own(one, "source"), "pointer") ?? own(one, "propertyPath") ?? own(one, "property") ?? own(one, "name") ?? own(one, "param");
      const path = (Array.isArray(at) ? at.map(textOf) : textOf(at).replaceAll(".", "/").split("/")).filter((part) => part !== "" && part !== "body" && part !== "data" && part !== "attributes");
      return path.length === 0 ? [] : texts([one]).map((message) => ({ place: `body/${path.join("/")}`, message }));
    });
  });
}

function BodyFields({ form, draft, problems, whenChanged }) {
  const { input } = form;
  if (input.kind === "object" && draft !== undefined) return <ObjectFields input={input} draft={draft} place="body" problems={problems} whenChanged={(next) => whenChanged(next)} />;
  return <Field input={input} draft={draft} place="body" problems={problems} caption={form.kind === "file" ? "File" : "Content"} whenChanged={(next) => whenChanged(next)} />;
}

/** A command that makes the same request; credentials are left for the reader to fill in. */
function curlOf(ui, operation, sent) {
  const quoted = (text) => `'${String(text).replaceAll("'", "'\\''")}'`;
  const base = SERVERS.at(Math.max(0, operation.server ?? ui.server)) ?? "";
  const query = ownEntries(sent.query).flatMap(([name, value]) => (Array.isArray(value) ? value : [value]).map((one) => `${encodeURIComponent(name)}=${encoded(one)}`)).join("&");
  const lines = [`curl -X ${operation.method} ${quoted(`${base}${sent.path ?? ""}${query === "" ? "" : `?${query}`}`)}`];
  ownEntries(sent.headers).forEach(([name, value]) => lines.push(`-H ${quoted(`${name}: ${value}`)}`));
  if ((operation.security ?? []).some((all) => all.length > 0)) lines.push("-H 'Authorization: …'");
  if (sent.body !== undefined) lines.push(`-d ${quoted(exactJsonText(sent.body))}`);
  return lines.join(" \\\n  ");
}

function ResultView({ ui, operation, state }) {
  const [isRaw, setIsRaw] = useState(false);
  const value = state.result;
  const isNothing = value === null || value === undefined || value === "";
  return (
    <div className="dragoman-result" role="status" data-testid="result">
      <div className="dragoman-row">
        <Badge text={`Done (${state.status})`} tone="good" />
        <span className="dragoman-hint">{`${state.took} ms`}</span>
        <span className="dragoman-grow" />
        {isNothing ? null : <Button label={isRaw ? "Formatted" : "Raw"} kind="quiet" isSmall whenPressed={() => setIsRaw(!isRaw)} />}
      </div>
      {isNothing ? <span className="dragoman-hint">The API sent no content.</span> : isRaw ? <pre className="dragoman-raw dragoman-code">{jsonOf(value)}</pre> : <DataView value={value} depth={0} />}
      <details className="dragoman-details">
        <summary>Headers of the answer</summary>
        <pre className="dragoman-raw dragoman-code">{ownEntries(state.headers).map(([name, text]) => `${name}: ${text}`).join("\n")}</pre>
      </details>
      <details className="dragoman-details">
        <summary>As a command</summary>
        <pre className="dragoman-raw dragoman-code">{curlOf(ui, operation, state.sent)}</pre>
      </details>
    </div>
  );
}
