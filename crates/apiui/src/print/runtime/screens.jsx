// ---- Screens: a resource, one of its items, a form, an operation ----

function resourceOf(id) {
  return PLAN.resources.find((resource) => resource.id === id);
}

function isAllowed(index) {
  return index !== undefined && !(PLAN.viewOnly === true && PLAN.operations.at(index).writes === true);
}

function Crumbs({ ui, pages }) {
  if (pages.length < 2) return null;
  return (
    <nav className="dragoman-crumbs" aria-label="Where you are">
      {pages.slice(0, -1).map((page, index) => (
        <Fragment key={index}>
          <button type="button" onClick={() => ui.goTo(page)}>
            {pageTitle(page)}
          </button>
          <span aria-hidden="true">/</span>
        </Fragment>
      ))}
      <span>{pageTitle(pages.at(-1))}</span>
    </nav>
  );
}

function pageTitle(page) {
  const resource = page.resource === undefined ? undefined : resourceOf(page.resource);
  if (page.kind === "item") return page.item === undefined ? resource.singular : itemTitle(resource, page.item);
  if (page.kind === "form") return PLAN.operations.at(page.operation).title;
  if (page.kind === "incoming") return "Webhooks";
  return resource === undefined ? "Overview" : resource.title;
}

function itemTitle(resource, item) {
  const text = textOf(item);
  return text === "" || text.startsWith("{") ? resource.singular : text;
}

function PageHead({ title, note, children }) {
  return (
    <header className="dragoman-head">
      <div className="dragoman-grow">
        <h1>{title}</h1>
        {note ? <p>{note}</p> : null}
      </div>
      <div className="dragoman-actions">{children}</div>
    </header>
  );
}

/** The screen of a resource: its list, and every operation it has (the children). */
function ResourceScreen({ ui, id, known, children }) {
  const resource = resourceOf(id);
  const operation = resource.list === undefined ? undefined : PLAN.operations.at(resource.list.operation);
  return (
    <>
      <PageHead title={resource.title} note={resource.note}>
        {operation === undefined ? null : <Button label="Refresh" signature={operation.signature} whenPressed={() => ui.refresh()} />}
        {isAllowed(resource.creates) ? <Button label={`New ${resource.singular.toLowerCase()}`} kind="primary" signature={PLAN.operations.at(resource.creates).signature} whenPressed={() => ui.goTo({ kind: "form", resource: resource.id, operation: resource.creates, known })} /> : null}
      </PageHead>
      {operation === undefined && resource.detail !== undefined ? <Lookup ui={ui} resource={resource} known={known} /> : null}
      {operation === undefined ? null : <ItemList key={exactJsonText(known ?? {})} ui={ui} resource={resource} known={known} />}
      <section className="dragoman-panel" aria-label="Operations">
        <h2 className="dragoman-title">{operation === undefined ? "Operations" : "All operations"}</h2>
        <div className="dragoman-operations">{children}</div>
      </section>
    </>
  );
}

/** Where there is no list, an item is opened by its key. */
function Lookup({ ui, resource, known }) {
  const operation = PLAN.operations.at(resource.detail);
  const [drafts, setDrafts] = useState(() => startDrafts(operation, known ?? {}));
  const [problems, setProblems] = useState([]);
  const inputs = (operation.inputs ?? []).filter((input) => input.required === true || ["path", "variable"].includes(input.place));
  const open = () => {
    const found = inputs.flatMap((input) => inputProblems(input, own(drafts, inputKey(input))));
    setProblems(found);
    if (found.length === 0) ui.goTo({ kind: "item", resource: resource.id, item: undefined, known: knownValues(operation, drafts) });
  };
  return (
    <form className="dragoman-panel dragoman-toolbar" noValidate role="search" aria-label={`Open ${resource.singular.toLowerCase()}`} onSubmit={(event) => {
      event.preventDefault();
      open();
    }}>
      {inputs.map((input) => (
        <Field key={inputKey(input)} input={withAll(input, { note: undefined, bare: true })} draft={own(drafts, inputKey(input))} place={inputKey(input)} problems={problems} whenChanged={(next) => setDrafts(withOwn(drafts, inputKey(input), next))} />
      ))}
      <Button label={`Open ${resource.singular.toLowerCase()}`} submits signature={operation.signature} />
    </form>
  );
}

/** One operation in a list of them: closed, a line; open, its form. */
function OperationEntry({ ui, number, known, "data-operation": signature }) {
  const page = pageOfRoute(ui.route);
  const [isOpen, setIsOpen] = useState(page.unfolded === number);
  useEffect(() => {
    if (page.unfolded === number) setIsOpen(true);
  }, [page.unfolded]);
  const operation = PLAN.operations.at(number);
  const id = useId();
  if (!isAllowed(number)) return null;
  return (
    <div className="dragoman-operation">
      <button type="button" className="dragoman-opener" aria-expanded={isOpen} aria-controls={id} data-operation={signature} onClick={() => {
        setIsOpen(!isOpen);
        if (page.kind === "resource") ui.replace(withOwn(page, "unfolded", isOpen ? undefined : number));
      }}>
        <Verb operation={operation} />
        <span className={operation.deprecated === true ? "dragoman-gone" : ""}>{operation.title}</span>
        <code className="dragoman-code">{operation.queryText === undefined ? operation.path : operation.signature}</code>
      </button>
      {isOpen ? (
        <div id={id} className="dragoman-padded">
          <OperationDetails operation={operation} />
          <OperationForm ui={ui} operation={operation} known={known} label={operation.writes === true ? "Send" : "Load"} />
        </div>
      ) : null}
    </div>
  );
}

function OperationDetails({ operation }) {
  const incoming = operation.incoming ?? [];
  return (
    <>
      {operation.deprecated === true ? <p className="dragoman-problem">This operation is deprecated.</p> : null}
      {operation.note ? <p className="dragoman-hint">{operation.note}</p> : null}
      {incoming.length > 0 ? <IncomingList title="The API calls back" entries={incoming} /> : null}
    </>
  );
}

function IncomingList({ title, entries }) {
  return (
    <div>
      <h2 className="dragoman-title">{title}</h2>
      <ul className="dragoman-notes">
        {entries.map((entry, index) => (
          <li key={index}>
            <strong>{entry.name}</strong> <code className="dragoman-code">{`${entry.method} ${entry.address ?? ""}`}</code>
            {entry.note ? <p>{entry.note}</p> : null}
            {(entry.fields ?? []).length > 0 ? <p className="dragoman-hint">{`Fields: ${entry.fields.join(", ")}`}</p> : null}
          </li>
        ))}
      </ul>
    </div>
  );
}

/** One item: its fields, what can be done with it, and where it leads. */
function ItemScreen({ ui, page }) {
  const resource = resourceOf(page.resource);
  const [isAsking, setIsAsking] = useState(false);
  const operation = resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail);
  const drafts = operation === undefined ? {} : startDrafts(operation, page.known);
  const isReady = operation !== undefined && missingInputs(operation, drafts).length === 0;
  const state = useAnswer(ui, operation ?? PLAN.operations.at(0), isReady ? buildCall(operation, drafts, undefined) : undefined, ui.turn);
  const unknown = unknownKeys(resource, page.known);
  const item = state.phase === "done" ? wholeItem(state.result) : page.item;
  const others = resource.operations.filter((index) => ![resource.detail, resource.edits, resource.deletes, resource.creates, resource.list?.operation].includes(index));
  const related = others.filter((index) => (PLAN.operations.at(index).inputs ?? []).some((input) => own(page.known, input.name) !== undefined && ["path", "variable"].includes(input.place)));
  return (
    <>
      <PageHead title={itemTitle(resource, item ?? page.item)} note={resource.singular}>
        {operation === undefined ? null : <Button label="Refresh" signature={operation.signature} whenPressed={() => ui.refresh()} />}
        {isAllowed(resource.edits) && unknown.length === 0 ? <Button label="Edit" signature={PLAN.operations.at(resource.edits).signature} whenPressed={() => ui.goTo({ kind: "form", resource: resource.id, operation: resource.edits, known: page.known, item: page.item })} /> : null}
        {isAllowed(resource.deletes) && unknown.length === 0 ? <Button label="Delete" kind="danger" signature={PLAN.operations.at(resource.deletes).signature} whenPressed={() => setIsAsking(true)} /> : null}
      </PageHead>
      {isAsking ? <DeleteQuestion ui={ui} resource={resource} page={page} whenClosed={() => setIsAsking(false)} /> : null}
      {unknown.length > 0 && isNested(page.item) ? <KeyQuestion ui={ui} resource={resource} page={page} parameters={unknown} /> : null}
      <section className="dragoman-panel dragoman-padded" aria-label="Details">
        {isReady && state.phase === "loading" ? <LoadingState /> : null}
        {state.phase === "failed" ? <FailureState ui={ui} operation={operation} state={state} whenRetried={() => ui.refresh()} /> : null}
        {item === undefined || (isReady && state.phase !== "done") ? null : <ItemFields resource={resource} item={item} />}
      </section>
      <RelationLinks ui={ui} resource={resource} item={item} known={page.known} />
      {related.length === 0 ? null : (
        <section className="dragoman-panel" aria-label="More operations">
          <h2 className="dragoman-title">More operations</h2>
          <div className="dragoman-operations">
            {related.map((index) => (
              <OperationEntry key={index} ui={ui} number={index} known={page.known} data-operation={PLAN.operations.at(index).signature} />
            ))}
          </div>
        </section>
      )}
    </>
  );
}

/** The parameters that name one item and whose values are not known for certain. */
function unknownKeys(resource, known) {
  const operations = [resource.detail, resource.edits, resource.deletes].filter((index) => index !== undefined).map((index) => PLAN.operations.at(index));
  const names = operations.flatMap((operation) => (operation.inputs ?? []).filter((input) => input.place === "path" || (input.place === "variable" && input.required === true && input.kind !== "object" && (resource.keys ?? []).some((key) => key.parameter === input.name))).map((input) => input.name));
  return [...new Set(names)].filter((name) => !isKeyValue(own(known, name)));
}

/** Where the specification does not say which field identifies an item, the reader does, once. */
function KeyQuestion({ ui, resource, page, parameters }) {
  const parameter = parameters.at(0);
  const id = useId();
  const guess = (resource.keys ?? []).find((key) => key.parameter === parameter)?.field;
  const fields = scalarFields(page.item);
  const [chosen, setChosen] = useState(fields.some(([name]) => name === guess) ? guess : (fields.at(0)?.at(0) ?? ""));
  if (fields.length === 0) return null;
  return (
    <form className="dragoman-confirm dragoman-ask" aria-label="Choose the key" onSubmit={(event) => {
      event.preventDefault();
      ui.chooseKey(resource, parameter, chosen, page);
    }}>
      <span className="dragoman-grow">{`The specification does not say which field of ${resource.title.toLowerCase()} is “${parameter}”. Choose it once; nothing is opened, changed or deleted before.`}</span>
      <label className="dragoman-hidden" htmlFor={id}>
        Field
      </label>
      <select id={id} className="dragoman-input dragoman-server" value={chosen} data-testid="key-field" onChange={(event) => setChosen(event.target.value)}>
        {fields.map(([name, value]) => (
          <option key={name} value={name}>
            {`${name}: ${textOf(value)}`}
          </option>
        ))}
      </select>
      <Button label="Use this field" kind="primary" submits />
    </form>
  );
}

/** The fields of an item that can be a key, with their values; one level into objects. */
function scalarFields(item) {
  return ownEntries(item).flatMap(([name, value]) => {
    if (isKeyValue(value)) return [[name, value]];
    return isNested(value) && !Array.isArray(value) ? ownEntries(value).filter(([, inner]) => isKeyValue(inner)).map(([inner, found]) => [`${name}.${inner}`, found]) : [];
  });
}

/** An answer may wrap the one item it holds. */
function wholeItem(result) {
  const entries = ownEntries(result);
  const inner = entries.length === 1 ? entries.at(0).at(1) : own(result, "data");
  return isNested(inner) && !Array.isArray(inner) && !(inner instanceof Blob) ? inner : result;
}

function ItemFields({ resource, item }) {
  if (!isNested(item) || Array.isArray(item) || item instanceof Blob) return <DataView value={item} depth={0} />;
  const columns = (resource.list?.columns ?? []).filter((column) => own(item, column.field) !== undefined);
  const known = columns.map((column) => column.field);
  const rest = ownEntries(item).filter(([name]) => !known.includes(name));
  return (
    <dl className="dragoman-pairs">
      {columns.map((column) => (
        <Fragment key={column.field}>
          <dt>{column.label}</dt>
          <dd>{["object", "list"].includes(column.display) ? <DataView value={own(item, column.field)} depth={1} /> : <Cell value={own(item, column.field)} display={column.display} field={column.field} />}</dd>
        </Fragment>
      ))}
      {rest.map(([name, value]) => (
        <Fragment key={name}>
          <dt>{labelOf(name)}</dt>
          <dd>
            <DataView value={value} depth={1} field={name} />
          </dd>
        </Fragment>
      ))}
    </dl>
  );
}

function RelationLinks({ ui, resource, item, known }) {
  const links = (resource.relations ?? []).flatMap((relation) => {
    const target = PLAN.resources.at(relation.resource);
    if (target.removed === true) return [];
    if (relation.field === undefined) return [{ relation, target, page: { kind: "resource", resource: target.id, known } }];
    const value = fieldOf(item, relation.field);
    if (!isKeyValue(value)) return [];
    return [{ relation, target, page: { kind: "item", resource: target.id, item: undefined, known: withOwn({}, relation.parameter, value) } }];
  });
  if (links.length === 0) return null;
  return (
    <section className="dragoman-panel dragoman-padded" aria-label="Related">
      <div className="dragoman-actions">
        {links.map((link, index) => (
          <Button key={index} label={`${link.relation.label} →`} whenPressed={() => ui.goTo(link.page)} />
        ))}
      </div>
    </section>
  );
}

function DeleteQuestion({ ui, resource, page, whenClosed }) {
  const operation = PLAN.operations.at(resource.deletes);
  const drafts = startDrafts(operation, page.known);
  const [state, setState] = useState({ phase: "waiting" });
  const missing = missingInputs(operation, drafts);
  const run = () => {
    setState({ phase: "loading" });
    ui.perform(operation, buildCall(operation, drafts, operation.body?.required === true ? valueOf(operation.body.input, startBody(operation, page.item)) : undefined), new AbortController()).then((next) => {
      setState(next);
      if (next.phase === "done") {
        ui.tell(`${resource.singular} deleted.`);
        ui.goBack();
      }
    });
  };
  return (
    <div className="dragoman-confirm" role="alertdialog" aria-label="Confirm deletion">
      <span className="dragoman-grow">{missing.length > 0 ? `${missing.map((input) => labelOf(input.name)).join(", ")} is not known; use the operation below.` : `Delete this ${resource.singular.toLowerCase()}? This cannot be undone.`}</span>
      {missing.length > 0 ? null : <Button label={state.phase === "loading" ? "Deleting…" : "Delete"} kind="danger" isBusy={state.phase === "loading"} signature={operation.signature} whenPressed={() => run()} />}
      <Button label="Keep" whenPressed={() => whenClosed()} />
      {state.phase === "failed" ? <span className="dragoman-problem" role="alert">{state.message || `The API answered ${state.status}.`}</span> : null}
    </div>
  );
}

/** A form that creates or changes an item. */
function FormScreen({ ui, page }) {
  const resource = resourceOf(page.resource);
  const operation = PLAN.operations.at(page.operation);
  const isEdit = page.operation === resource.edits;
  return (
    <>
      <PageHead title={isEdit ? `Edit ${resource.singular.toLowerCase()}` : `New ${resource.singular.toLowerCase()}`} note={operation.note} />
      {isEdit ? (
        <EditForm ui={ui} page={page} resource={resource} operation={operation} />
      ) : (
        <section className="dragoman-panel dragoman-padded" aria-label="Form">
          <OperationForm ui={ui} operation={operation} known={page.known} hides={knownPathNames(operation, page.known)} label="Create" isPlain whenCancelled={() => ui.goBack()} whenDone={() => {
            ui.tell(`${resource.singular} created.`);
            ui.goBack();
          }} />
        </section>
      )}
    </>
  );
}

/** The parameters that the page already knows: they say which item it is about, so they are not edited. */
function knownPathNames(operation, known) {
  return (operation.inputs ?? []).filter((input) => ["path", "variable"].includes(input.place) && isKeyValue(own(known, input.name))).map((input) => input.name);
}

/** Reads the item anew, then shows a form that sends back exactly what was not touched. */
function EditForm({ ui, page, resource, operation }) {
  const detail = resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail);
  const drafts = detail === undefined ? {} : startDrafts(detail, page.known);
  const isReady = detail !== undefined && missingInputs(detail, drafts).length === 0;
  const call = isReady ? buildCall(detail, drafts, undefined) : undefined;
  const [turn, setTurn] = useState(0);
  const [isAccepted, setIsAccepted] = useState(false);
  const state = useAnswer(ui, detail ?? operation, call, turn);
  if (isReady && state.phase === "loading") return <LoadingState />;
  const found = state.phase === "done" ? recordIn(operation, state.result) : undefined;
  if (state.phase === "failed" && !isAccepted) {
    return (
      <section className="dragoman-panel" aria-label="Form">
        <FailureState ui={ui} operation={detail} state={state} whenRetried={() => setTurn(turn + 1)} />
        {isNested(page.item) ? (
          <div className="dragoman-padded">
            <Button label="Edit what the list showed" whenPressed={() => setIsAccepted(true)} />
          </div>
        ) : null}
      </section>
    );
  }
  const item = found ?? page.item;
  const reread = () => ui.perform(detail, call, new AbortController()).then((next) => (next.phase === "done" ? recordIn(operation, next.result) : undefined));
  const edit = { item, known: page.known, base: item, isWhole: found !== undefined, etag: found === undefined ? undefined : strongTag(state.headers), reread: found === undefined ? undefined : reread };
  const known = withAll(graphInputs(operation, item), page.known);
  return (
    <section className="dragoman-panel dragoman-padded" aria-label="Form">
      <OperationForm key={turn} ui={ui} operation={operation} known={known} edit={edit} hides={knownPathNames(operation, page.known)} label="Save" isPlain whenCancelled={() => ui.goBack()} whenDone={() => {
        ui.tell(`${resource.singular} saved.`);
        ui.goBack();
      }} />
    </section>
  );
}

/** The object in an answer that the body of an edit is about: the whole answer, or the one that it wraps. */
function recordIn(operation, result) {
  if (operation.body === undefined) return wholeItem(result);
  const names = fieldsOf(operation.body.input).map((field) => field.name);
  const inner = wholeItem(result);
  if (names.length === 0) return isNested(inner) && !Array.isArray(inner) ? inner : undefined;
  const score = (value) => names.filter((name) => own(value, name) !== undefined).length;
  const best = score(inner) > score(result) ? inner : result;
  return score(best) === 0 && names.length > 0 ? undefined : best;
}

/** The version of a record that the API gave. A weak one cannot be sent back. */
function strongTag(headers) {
  const entry = ownEntries(headers).find(([name]) => name.toLowerCase() === "etag");
  const tag = entry === undefined ? "" : String(entry.at(1));
  return tag === "" || tag.startsWith("W/") ? undefined : tag;
}

/** In GraphQL the fields of an item are variables, or the fields of one input object. */
function graphInputs(operation, item) {
  const pairs = (operation.inputs ?? []).filter((input) => input.place === "variable").map((input) => [input.name, input.kind === "object" ? (own(item, input.name) ?? item) : own(item, input.name)]);
  return Object.fromEntries(pairs.filter((pair) => pair.at(1) !== undefined));
}
