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

const CONTROL_TYPES = [
  ["number", "number"],
  ["integer", "number"],
  ["date", "date"],
  ["datetime", "datetime-local"],
  ["time", "time"],
  ["email", "email"],
  ["secret", "password"],
  ["url", "url"],
];

function Control({ id, input, draft, isWrong, whenChanged }) {
  const described = `${input.note ? `dragoman-hint-${id}` : ""}${isWrong ? ` dragoman-problem-${id}` : ""}`.trim() || undefined;
  const needed = input.required === true;
  if (input.kind === "boolean") {
    return (
      <select id={id} className="dragoman-input" value={draft === undefined ? "" : String(draft)} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value === "" ? undefined : event.target.value === "true")}>
        <option value="">–</option>
        <option value="true">Yes</option>
        <option value="false">No</option>
      </select>
    );
  }
  if (input.kind === "choice") {
    return (
      <select id={id} className="dragoman-input" value={draft ?? ""} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value)}>
        <option value="">–</option>
        {input.choices.map((choice) => (
          <option key={JSON.stringify(choice)} value={JSON.stringify(choice)}>
            {choice === "" ? "(empty)" : String(choice)}
          </option>
        ))}
      </select>
    );
  }
  if (input.kind === "multiline" || input.kind === "json") {
    return <textarea id={id} className={`dragoman-input${input.kind === "json" ? " dragoman-code" : ""}`} rows={input.kind === "json" ? 5 : 4} value={draft ?? ""} placeholder={input.kind === "json" ? "JSON" : input.example} spellCheck={input.kind !== "json"} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value)} />;
  }
  if (input.kind === "file") {
    return <input id={id} type="file" className="dragoman-input" aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.files?.[0])} />;
  }
  const type = CONTROL_TYPES.find(([kind]) => kind === input.kind)?.at(1) ?? "text";
  return <input id={id} type={type} className="dragoman-input" value={draft ?? ""} placeholder={input.example} step={type === "number" ? "any" : undefined} autoComplete={type === "password" ? "new-password" : "off"} aria-invalid={isWrong} aria-required={needed} aria-describedby={described} onChange={(event) => whenChanged(event.target.value)} />;
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
  if (input.kind === "list") return <ListField input={input} draft={draft ?? []} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} label={label} />;
  if (input.kind === "map") return <MapField input={input} draft={draft ?? []} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} />;
  if (draft === undefined || draft === null) {
    return (
      <div>
        <Button label={`Add ${label.toLowerCase()}`} isSmall whenPressed={() => whenChanged(startDraft({ name: "", kind: input.kind, shape: input.shape, fields: input.fields, alternatives: input.alternatives }, true))} />
      </div>
    );
  }
  return (
    <div className="dragoman-box">
      {input.kind === "object" ? <ObjectFields input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} /> : <VariantField input={input} draft={draft} place={place} problems={problems} whenChanged={(next) => whenChanged(next)} />}
      {input.required === true ? null : (
        <div>
          <Button label="Leave out" kind="quiet" isSmall whenPressed={() => whenChanged(undefined)} />
        </div>
      )}
    </div>
  );
}

function ObjectFields({ input, draft, place, problems, whenChanged }) {
  return fieldsOf(input).map((field) => <Field key={field.name} input={field} draft={own(draft, field.name)} place={`${place}/${field.name}`} problems={problems} whenChanged={(next) => whenChanged(withOwn(draft, field.name, next))} />);
}

function ListField({ input, draft, place, problems, whenChanged, label }) {
  const item = itemOf(input);
  return (
    <div className="dragoman-box">
      {draft.map((one, index) => (
        <div key={index} className="dragoman-row">
          <div className="dragoman-grow">
            <Field input={item} draft={one} place={`${place}/${index}`} problems={problems} caption={`${label} ${index + 1}`} whenChanged={(next) => whenChanged(draft.map((old, at) => (at === index ? next : old)))} />
          </div>
          <Button label="Remove" kind="quiet" isSmall whenPressed={() => whenChanged(draft.filter((old, at) => at !== index))} />
        </div>
      ))}
      <div>
        <Button label="Add entry" isSmall whenPressed={() => whenChanged([...draft, startDraft(item, true)])} />
      </div>
    </div>
  );
}

function MapField({ input, draft, place, problems, whenChanged }) {
  const item = itemOf(input);
  const changed = (index, entry) => whenChanged(draft.map((old, at) => (at === index ? entry : old)));
  return (
    <div className="dragoman-box">
      {draft.map((entry, index) => (
        <div key={index} className="dragoman-row">
          <Field input={{ name: "name", kind: "text" }} draft={entry.name} place="" problems={[]} whenChanged={(next) => changed(index, { name: next, draft: entry.draft })} />
          <div className="dragoman-grow">
            <Field input={item} draft={entry.draft} place={`${place}/${index}`} problems={problems} whenChanged={(next) => changed(index, { name: entry.name, draft: next })} />
          </div>
          <Button label="Remove" kind="quiet" isSmall whenPressed={() => whenChanged(draft.filter((old, at) => at !== index))} />
        </div>
      ))}
      <div>
        <Button label="Add entry" isSmall whenPressed={() => whenChanged([...draft, { name: "", draft: startDraft(item, true) }])} />
      </div>
    </div>
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
        <select id={id} className="dragoman-input" value={String(draft.chosen)} onChange={(event) => whenChanged({ chosen: Number(event.target.value), draft: startDraft(input.alternatives.at(Number(event.target.value)).input, true) })}>
          {input.alternatives.map((one, index) => (
            <option key={index} value={String(index)}>
              {one.label}
            </option>
          ))}
        </select>
      </div>
      {inner.kind === "object" ? <ObjectFields input={inner} draft={draft.draft ?? {}} place={`${place}/${draft.chosen}`} problems={problems} whenChanged={(next) => whenChanged({ chosen: draft.chosen, draft: next })} /> : <Field input={wanted} draft={draft.draft} place={`${place}/${draft.chosen}`} problems={problems} whenChanged={(next) => whenChanged({ chosen: draft.chosen, draft: next })} />}
    </>
  );
}

/** The inputs and the body of an operation, checked before it is called. */
function OperationForm({ ui, operation, known, bodyValue, label, whenDone, isPlain, hides }) {
  const [drafts, setDrafts] = useState(() => startDrafts(operation, known ?? {}));
  const [bodyDraft, setBodyDraft] = useState(() => startBody(operation, bodyValue));
  const [problems, setProblems] = useState([]);
  const [state, setState] = useState({ phase: "waiting" });
  const summary = useRef(null);
  const isBusy = state.phase === "loading";
  const run = () => {
    const found = [
      ...(operation.inputs ?? []).flatMap((input) => problemsOf(input, own(drafts, inputKey(input)), inputKey(input))),
      ...(operation.body === undefined ? [] : problemsOf(operation.body.input, bodyDraft, "body")),
    ];
    setProblems(found);
    if (found.length > 0) {
      summary.current?.focus();
      return;
    }
    setState({ phase: "loading" });
    ui.perform(operation, buildCall(operation, drafts, bodyDraft), new AbortController()).then((next) => {
      setState(next);
      if (next.phase === "done") whenDone?.(next);
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
      {inputs.map((input) => (
        <Field key={inputKey(input)} input={input} draft={own(drafts, inputKey(input))} place={inputKey(input)} problems={problems} whenChanged={(next) => setDrafts((before) => withOwn(before, inputKey(input), next))} />
      ))}
      {operation.body === undefined ? null : <BodyFields form={operation.body} draft={bodyDraft} problems={problems} whenChanged={(next) => setBodyDraft(next)} />}
      {needsSignIn(operation, ui.held) && PLAN.auth ? (
        <p className="dragoman-hint">
          This needs credentials. <Button label="Sign in" kind="quiet" isSmall whenPressed={() => ui.askSignIn()} />
        </p>
      ) : null}
      <div className="dragoman-actions">
        <Button label={isBusy ? "Working…" : label} kind={operation.destroys === true ? "danger" : "primary"} submits isBusy={isBusy} signature={operation.signature} />
      </div>
      {state.phase === "failed" ? <FailureState ui={ui} operation={operation} state={state} whenRetried={() => run()} /> : null}
      {state.phase === "done" && isPlain !== true ? <ResultView state={state} /> : null}
    </form>
  );
}

function startBody(operation, value) {
  if (operation.body === undefined) return undefined;
  const { input } = operation.body;
  if (value !== undefined) return draftOf(input, value);
  return startDraft(input, operation.body.required === true || ["object", "variant"].includes(input.kind));
}

function BodyFields({ form, draft, problems, whenChanged }) {
  const { input } = form;
  if (input.kind === "object" && draft !== undefined) return <ObjectFields input={input} draft={draft} place="body" problems={problems} whenChanged={(next) => whenChanged(next)} />;
  return <Field input={input} draft={draft} place="body" problems={problems} caption={form.kind === "file" ? "File" : "Content"} whenChanged={(next) => whenChanged(next)} />;
}

function ResultView({ state }) {
  const [isRaw, setIsRaw] = useState(false);
  const value = state.result;
  const isNothing = value === null || value === undefined || value === "";
  return (
    <div className="dragoman-result" role="status" data-testid="result">
      <div className="dragoman-row">
        <Badge text={`Done (${state.status})`} tone="good" />
        <span className="dragoman-grow" />
        {isNothing ? null : <Button label={isRaw ? "Formatted" : "Raw"} kind="quiet" isSmall whenPressed={() => setIsRaw(!isRaw)} />}
      </div>
      {isNothing ? <span className="dragoman-hint">The API sent no content.</span> : isRaw ? <pre className="dragoman-raw dragoman-code">{jsonOf(value)}</pre> : <DataView value={value} depth={0} />}
    </div>
  );
}
