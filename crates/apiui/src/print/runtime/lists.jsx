// ---- Lists: load, filter, sort, group and page through the items of a resource ----

function shownColumns(list) {
  return list.columns.filter((column) => column.hidden !== true);
}

function columnOf(list, field) {
  return list.columns.find((column) => column.field === field) ?? { field, label: labelOf(field), display: "text" };
}

/** The query that asks for one page. */
function pageQuery(paging, pageSize, mark) {
  if (paging === undefined) return {};
  const pairs = [];
  if (paging.sizeParameter !== undefined) pairs.push([paging.sizeParameter, pageSize]);
  if (paging.style === "page") pairs.push([paging.parameter, mark.index + (paging.first ?? 0)]);
  else if (paging.style === "offset") pairs.push([paging.parameter, mark.index * pageSize]);
  else if (mark.cursor !== undefined && paging.parameter !== undefined) pairs.push([paging.parameter, mark.cursor]);
  return Object.fromEntries(pairs);
}

/** The mark of the page after this one, or undefined. */
function nextMark(paging, pageSize, mark, state, items) {
  if (paging === undefined || state.phase !== "done") return undefined;
  const index = mark.index + 1;
  if (paging.style === "page" || paging.style === "offset") {
    return items.length > 0 && (paging.sizeParameter === undefined || items.length >= pageSize) ? { index } : undefined;
  }
  const more = paging.more === undefined ? undefined : valueAt(state.result, paging.more);
  if (more === false) return undefined;
  const sent = paging.next === undefined ? undefined : valueAt(state.result, paging.next);
  if (paging.style === "link") {
    const address = typeof sent === "string" && sent !== "" ? sent : nextLink(state.headers);
    return address === undefined ? undefined : { index, query: queryOfAddress(address) };
  }
  const last = paging.fromLast === undefined ? undefined : fieldOf(items.at(-1), paging.fromLast);
  const cursor = sent ?? last;
  if (cursor === undefined || cursor === null || cursor === "" || items.length === 0) return undefined;
  return more === undefined && paging.fromLast !== undefined && items.length < pageSize ? undefined : { index, cursor };
}

/** The most rows that the API sends at a time, where it says so. */
function largestPage(operation, paging) {
  return (operation.inputs ?? []).find((input) => input.name === paging.sizeParameter)?.maximum;
}

function pagingNames(list) {
  return list.paging === undefined || !PLAN.pagination ? [] : [list.paging.parameter, list.paging.sizeParameter].filter((name) => name !== undefined);
}

/** The call for one page of a list. */
function listCall(operation, list, drafts, pageSize, mark) {
  const call = buildCall(operation, drafts, undefined);
  const paging = PLAN.pagination ? list.paging : undefined;
  if (paging === undefined) return call;
  const query = pageQuery(paging, pageSize, mark);
  if (operation.queryText !== undefined) {
    return { path: call.path, query: call.query, headers: call.headers, body: { query: operation.queryText, variables: withAll(call.body.variables, query) } };
  }
  return { path: call.path, query: withAll(withAll(call.query, query), mark.query), headers: call.headers, body: undefined };
}

/** What came in place of a list, where the answer is not one; `{ value }` or undefined. */
function otherAnswer(list, state) {
  if (state.phase !== "done") return undefined;
  const found = list.items === undefined ? state.result : valueAt(state.result, list.items);
  const isMissing = found === undefined || found === null;
  if (Array.isArray(found)) return undefined;
  // An envelope without its list, or nothing at all, is an empty list.
  if (isMissing && (state.result === undefined || state.result === null || state.result === "")) return undefined;
  return { value: state.result };
}

function itemsOf(list, state) {
  if (state.phase !== "done") return [];
  const found = list.items === undefined ? state.result : valueAt(state.result, list.items);
  return Array.isArray(found) ? found.filter((item) => item !== null && item !== undefined) : [];
}

function totalOf(list, state) {
  const total = list.total === undefined || state.phase !== "done" ? undefined : valueAt(state.result, list.total);
  return typeof total === "number" ? total : undefined;
}

/** The values that are handed from a list to its items: what the list itself was asked with. */
function knownValues(operation, drafts) {
  return (operation.inputs ?? []).reduce((known, input) => {
    const value = valueOf(input, own(drafts, inputKey(input)));
    return value === undefined || !["path", "variable"].includes(input.place) ? known : withOwn(known, input.name, value);
  }, {});
}

function ItemList({ ui, resource, known }) {
  const { list } = resource;
  const operation = PLAN.operations.at(list.operation);
  const kept = ui.keptView("list");
  const [drafts, setDrafts] = useState(() => kept?.applied ?? startDrafts(operation, known ?? {}));
  const [applied, setApplied] = useState(drafts);
  const [marks, setMarks] = useState(kept?.marks ?? [{ index: 0 }]);
  const [pageSize, setPageSize] = useState(kept?.pageSize ?? list.pageSize);
  const [turn, setTurn] = useState(0);
  useEffect(() => {
    ui.keepView("list", { applied, marks, pageSize });
  }, [applied, marks, pageSize]);
  const missing = missingInputs(operation, applied).filter((input) => !pagingNames(list).includes(input.name));
  const mark = marks.at(-1);
  const call = missing.length > 0 ? undefined : listCall(operation, list, applied, pageSize, mark);
  const state = useAnswer(ui, operation, call, turn + ui.turn);
  const items = itemsOf(list, state);
  const other = otherAnswer(list, state);
  const isPaged = PLAN.pagination && list.paging !== undefined;
  const restart = () => {
    setMarks([{ index: 0 }]);
    setTurn(turn + 1);
  };
  return (
    <section className="dragoman-panel" aria-label={resource.title}>
      <QueryBar operation={operation} list={list} drafts={drafts} whenChanged={(next) => setDrafts(next)} whenApplied={() => {
        setApplied(drafts);
        restart();
      }} />
      {state.phase === "waiting" ? <EmptyState title="Fill in what the list needs" text={`${missing.map((input) => labelOf(input.name)).join(", ")} ${missing.length === 1 ? "is" : "are"} required to load ${resource.title.toLowerCase()}.`} /> : null}
      {state.phase === "loading" ? <LoadingState text={`Loading ${resource.title.toLowerCase()}…`} /> : null}
      {state.phase === "failed" ? <FailureState ui={ui} operation={operation} state={state} whenRetried={() => setTurn(turn + 1)} /> : null}
      {other === undefined ? null : <OtherAnswer value={other.value} />}
      {state.phase === "done" && other === undefined ? <ItemBrowser ui={ui} resource={resource} operation={operation} items={items} known={knownValues(operation, applied)} isPaged={isPaged} pageSize={pageSize} /> : null}
      {isPaged && other === undefined && (state.phase === "done" || state.phase === "loading") ? (
        <Pager page={mark.index} total={totalOf(list, state)} count={items.length} pageSize={pageSize} largest={largestPage(operation, list.paging)} signature={operation.signature} canGoOn={nextMark(list.paging, pageSize, mark, state, items) !== undefined} whenBack={() => setMarks(marks.slice(0, -1))} whenNext={() => setMarks([...marks, nextMark(list.paging, pageSize, mark, state, items)])} whenSized={list.paging.sizeParameter === undefined ? undefined : (size) => {
          setPageSize(size);
          restart();
        }} />
      ) : null}
    </section>
  );
}

function OtherAnswer({ value }) {
  return (
    <div className="dragoman-padded" data-testid="other-answer">
      <p className="dragoman-hint">The answer is not the list that the specification describes. This is what came:</p>
      <DataView value={value} depth={0} />
    </div>
  );
}

/** The parameters of the list itself: what the API filters by. */
function QueryBar({ operation, list, drafts, whenChanged, whenApplied }) {
  const [isWide, setIsWide] = useState(false);
  const hidden = pagingNames(list);
  const inputs = (operation.inputs ?? []).filter((input) => !hidden.includes(input.name) && !["header", "cookie"].includes(input.place));
  const sorted = [...inputs.filter((input) => input.required === true), ...inputs.filter((input) => input.required !== true)];
  const shown = isWide ? sorted : sorted.slice(0, Math.max(4, sorted.filter((input) => input.required === true).length));
  if (inputs.length === 0) return null;
  return (
    <form className="dragoman-toolbar" noValidate role="search" aria-label="Parameters of the list" onSubmit={(event) => {
      event.preventDefault();
      whenApplied();
    }}>
      {shown.map((input) => (
        <Field key={inputKey(input)} input={withAll(input, { note: undefined, bare: true })} draft={own(drafts, inputKey(input))} place={inputKey(input)} problems={[]} whenChanged={(next) => whenChanged(withOwn(drafts, inputKey(input), next))} />
      ))}
      <Button label="Apply" submits signature={operation.signature} />
      {sorted.length > shown.length || isWide ? <Button label={isWide ? "Fewer filters" : `${sorted.length - shown.length} more`} kind="quiet" whenPressed={() => setIsWide(!isWide)} /> : null}
    </form>
  );
}

/** The items that are loaded: searched, filtered, sorted and grouped here. */
function ItemBrowser({ ui, resource, operation, items, known, isPaged, pageSize }) {
  const { list } = resource;
  const kept = ui.keptView("rows");
  const [wanted, setWanted] = useState(kept?.wanted ?? "");
  const [filters, setFilters] = useState(kept?.filters ?? {});
  const [isFiltering, setIsFiltering] = useState(kept?.isFiltering ?? false);
  const [order, setOrder] = useState(kept?.order ?? list.sort ?? { field: undefined });
  const [page, setPage] = useState(kept?.page ?? 0);
  const [size, setSize] = useState(kept?.size ?? pageSize);
  const [fields, setFields] = useState(kept?.fields ?? shownColumns(list).map((column) => column.field));
  const columns = list.columns.filter((column) => fields.includes(column.field));
  useEffect(() => {
    ui.keepView("rows", { wanted, filters, isFiltering, order, page, size, fields });
  }, [wanted, filters, isFiltering, order, page, size, fields]);
  const active = ownEntries(filters).filter(([, text]) => text !== "");
  const found = items.filter((item) => {
    const has = (field, text) => includesText(fieldOf(item, field), columnOf(list, field).display, text);
    const isFound = wanted.trim() === "" || (list.search ?? []).some((field) => has(field, wanted));
    return isFound && active.every(([field, text]) => has(field, text));
  });
  const direction = order.descending === true ? -1 : 1;
  const sorted = order.field === undefined ? found : found.toSorted((first, second) => direction * compareValues(fieldOf(first, order.field), fieldOf(second, order.field)));
  const pages = PLAN.pagination && !isPaged ? Math.max(1, Math.ceil(sorted.length / size)) : 1;
  const at = Math.min(page, pages - 1);
  const shown = pages > 1 ? sorted.slice(at * size, (at + 1) * size) : sorted;
  const layout = own(list, "layout") ?? own(PLAN, "layout");
  const setFilter = (field, text) => {
    setPage(0);
    setFilters(withOwn(filters, field, text));
  };
  const open = (item) => ui.goTo({ kind: "item", resource: resource.id, item, known: withAll(known, keysOf(ui, resource, item)) });
  const sortBy = (field) => setOrder(order.field !== field ? { field } : order.descending === true ? { field: undefined } : { field, descending: true });
  // A table that nothing matches keeps its head: the filters are in it.
  return (
    <>
      <BrowserBar list={list} fields={fields} whenChosen={(next) => setFields(next)} hasTable={layout !== "cards"} items={items} wanted={wanted} filters={filters} isFiltering={isFiltering} whenSearched={(text) => {
        setPage(0);
        setWanted(text);
      }} whenFiltered={(field, text) => setFilter(field, text)} whenToggled={() => setIsFiltering(!isFiltering)} count={found.length} />
      {items.length === 0 ? null : layout === "cards" ? (
        <CardGrid resource={resource} columns={columns} items={shown} whenOpened={(item) => open(item)} signature={detailSignature(resource)} />
      ) : (
        <ItemTable resource={resource} columns={columns} items={shown} order={order} filters={filters} isFiltering={isFiltering} whenSorted={(field) => sortBy(field)} whenFiltered={(field, text) => setFilter(field, text)} whenOpened={(item) => open(item)} isCompact={layout === "compact"} signature={detailSignature(resource)} />
      )}
      {shown.length > 0 ? null : (
        <EmptyState title={items.length === 0 ? `No ${resource.title.toLowerCase()}` : "Nothing matches"} text={items.length === 0 ? "The API sent an empty list." : "Change or clear the search and the filters."}>
          <Button label="Load again" signature={operation.signature} whenPressed={() => ui.refresh()} />
        </EmptyState>
      )}
      {PLAN.pagination && !isPaged && sorted.length > Math.min(size, list.pageSize) ? <Pager page={at} total={sorted.length} count={shown.length} pageSize={size} canGoOn={at + 1 < pages} whenBack={() => setPage(at - 1)} whenNext={() => setPage(at + 1)} whenSized={(next) => {
        setSize(next);
        setPage(0);
      }} /> : null}
    </>
  );
}

function detailSignature(resource) {
  return resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail).signature;
}

/** Whether a value can name an item in an address. */
function isKeyValue(value) {
  return value !== undefined && value !== null && typeof value !== "boolean" && !isNested(value) && !["", ".", ".."].includes(scalarText(value));
}

/** The parameters that an item's own fields fill: those of the specification and those that the reader chose. No guesses. */
function keysOf(ui, resource, item) {
  const given = (resource.keys ?? []).filter((key) => key.guessed !== true).map((key) => [key.parameter, key.field]);
  const chosen = ownEntries(own(ui.keyFields, resource.id));
  const pairs = [...given, ...chosen].map(([parameter, field]) => [parameter, fieldOf(item, field)]);
  return Object.fromEntries(pairs.filter((pair) => isKeyValue(pair.at(1))));
}

function BrowserBar({ list, fields, whenChosen, hasTable, items, wanted, filters, isFiltering, whenSearched, whenFiltered, whenToggled, count }) {
  const id = useId();
  const hasSearch = (list.search ?? []).length > 0;
  const names = (list.search ?? []).map((field) => columnOf(list, field).label.toLowerCase());
  return (
    <div className="dragoman-toolbar">
      {hasSearch ? (
        <div className="dragoman-field" role="search" aria-label="Loaded rows">
          <label htmlFor={id}>Search</label>
          <input id={id} type="search" className="dragoman-input" value={wanted} placeholder={names.length > 3 ? "Search…" : `Search by ${names.join(", ")}…`} data-testid="search-bar" onChange={(event) => whenSearched(event.target.value)} />
        </div>
      ) : null}
      {(list.filters ?? []).map((field) => (
        <FieldFilter key={field} column={columnOf(list, field)} items={items} text={own(filters, field) ?? ""} whenFiltered={(text) => whenFiltered(field, text)} />
      ))}
      <span className="dragoman-hint">{`${count} ${count === 1 ? "row" : "rows"}`}</span>
      <span className="dragoman-grow" />
      {list.columns.length > 1 ? <ColumnChoice list={list} fields={fields} whenChosen={(next) => whenChosen(next)} /> : null}
      {hasTable === false ? null : <Button label={isFiltering ? "Hide filters" : "Filter"} kind="quiet" isSmall whenPressed={() => whenToggled()} />}
    </div>
  );
}

/** Which columns are shown; the last one stays. */
function ColumnChoice({ list, fields, whenChosen }) {
  const id = useId();
  const without = (field) => fields.filter((one) => one !== field);
  return (
    <details className="dragoman-columns">
      <summary>Columns</summary>
      <div className="dragoman-columnlist" role="group" aria-label="Columns">
        {list.columns.map((column, index) => (
          <label key={column.field} className="dragoman-check" htmlFor={`dragoman-column-${id}-${index}`}>
            <input id={`dragoman-column-${id}-${index}`} type="checkbox" checked={fields.includes(column.field)} disabled={fields.length === 1 && fields.includes(column.field)} onChange={(event) => whenChosen(event.target.checked ? [...fields, column.field] : without(column.field))} />
            <span>{column.label}</span>
          </label>
        ))}
      </div>
    </details>
  );
}

/** A filter that is always in view: a choice where the values are few. */
function FieldFilter({ column, items, text, whenFiltered }) {
  const id = useId();
  const values = [...new Set(items.map((item) => textOf(fieldOf(item, column.field))))].filter((value) => value !== "").toSorted();
  const isChoice = column.display === "choice" || column.display === "boolean" || (values.length > 0 && values.length <= 12);
  return (
    <div className="dragoman-field">
      <label htmlFor={id}>{column.label}</label>
      {isChoice ? (
        <select id={id} className="dragoman-input" value={text} data-testid="field-filter" onChange={(event) => whenFiltered(event.target.value)}>
          <option value="">All</option>
          {values.map((value) => (
            <option key={value} value={value}>
              {value}
            </option>
          ))}
        </select>
      ) : (
        <input id={id} type="text" className="dragoman-input" value={text} data-testid="field-filter" onChange={(event) => whenFiltered(event.target.value)} />
      )}
    </div>
  );
}

/** Items under the value of a field, or all of them under none. */
function groupsOf(list, items) {
  if (list.grouping === undefined) return [{ title: undefined, items }];
  const titles = [...new Set(items.map((item) => textOf(fieldOf(item, list.grouping))))].toSorted();
  return titles.map((title) => ({ title: title === "" ? "None" : title, items: items.filter((item) => textOf(fieldOf(item, list.grouping)) === title) }));
}

function ItemTable({ resource, columns, items, order, filters, isFiltering, whenSorted, whenFiltered, whenOpened, isCompact, signature }) {
  return (
    <div className={isCompact ? "dragoman-scroll dragoman-compact" : "dragoman-scroll"}>
      <table className="dragoman-table">
        <caption className="dragoman-hidden">{resource.title}</caption>
        <thead>
          <tr>
            {columns.map((column, position) => (
              <th key={column.field} scope="col" className={column.display === "number" && position > 0 ? "dragoman-number" : ""} aria-sort={order.field === column.field ? (order.descending === true ? "descending" : "ascending") : "none"}>
                <button type="button" onClick={() => whenSorted(column.field)}>
                  {column.label}
                  <span aria-hidden="true">{order.field === column.field ? (order.descending === true ? "↓" : "↑") : ""}</span>
                </button>
              </th>
            ))}
          </tr>
          {isFiltering ? (
            <tr>
              {columns.map((column) => (
                <th key={column.field}>
                  <span>
                    <input type="text" className="dragoman-input" aria-label={`Filter by ${column.label}`} value={own(filters, column.field) ?? ""} onChange={(event) => whenFiltered(column.field, event.target.value)} />
                  </span>
                </th>
              ))}
            </tr>
          ) : null}
        </thead>
        {groupsOf(resource.list, items).map((group, at) => (
          <tbody key={at}>
            {group.title === undefined ? null : (
              <tr className="dragoman-grouprow">
                <td colSpan={columns.length}>{`${columnOf(resource.list, resource.list.grouping).label}: ${group.title} (${group.items.length})`}</td>
              </tr>
            )}
            {group.items.map((item, index) => (
              <tr key={index}>
                {columns.map((column, position) => (
                  <td key={column.field} className={column.display === "number" && position > 0 ? "dragoman-number" : ""}>
                    {position === 0 ? null : (
                      <span className="dragoman-celllabel" aria-hidden="true">
                        {column.label}
                      </span>
                    )}
                    {position === 0 ? (
                      <button type="button" className="dragoman-rowlink" data-operation={signature} onClick={() => whenOpened(item)}>
                        {shownText(fieldOf(item, column.field), column.display) || "Open"}
                      </button>
                    ) : (
                      <Cell value={fieldOf(item, column.field)} display={column.display} field={column.field} />
                    )}
                  </td>
                ))}
              </tr>
            ))}
          </tbody>
        ))}
      </table>
    </div>
  );
}

function CardGrid({ resource, columns, items, whenOpened, signature }) {
  const head = columns.find((column) => /^(name|title|label)$/i.test(column.field)) ?? columns.at(0);
  return groupsOf(resource.list, items).map((group, at) => (
    <div key={at}>
      {group.title === undefined ? null : <h2 className="dragoman-title">{`${columnOf(resource.list, resource.list.grouping).label}: ${group.title}`}</h2>}
      <ul className="dragoman-cards">
        {group.items.map((item, index) => (
          <li key={index} className="dragoman-card">
            <h3>
              <button type="button" className="dragoman-rowlink" data-operation={signature} onClick={() => whenOpened(item)}>
                {head === undefined ? "Open" : shownText(fieldOf(item, head.field), head.display) || "Open"}
              </button>
            </h3>
            <dl className="dragoman-pairs">
              {columns
                .filter((column) => column !== head)
                .map((column) => (
                  <Fragment key={column.field}>
                    <dt>{column.label}</dt>
                    <dd>
                      <Cell value={fieldOf(item, column.field)} display={column.display} field={column.field} />
                    </dd>
                  </Fragment>
                ))}
            </dl>
          </li>
        ))}
      </ul>
    </div>
  ));
}

function Pager({ page, total, count, pageSize, largest, canGoOn, signature, whenBack, whenNext, whenSized }) {
  const id = useId();
  const first = page * pageSize + 1;
  const range = count === 0 ? "" : total === undefined ? `${first}–${first + count - 1}` : `${first}–${first + count - 1} of ${total}`;
  const usual = [10, 20, 50, 100].filter((size) => largest === undefined || size <= largest);
  const sizes = [...new Set([...usual, pageSize])].toSorted((a, b) => a - b);
  return (
    <nav className="dragoman-pager" aria-label="Pages">
      <Button label="Previous" isSmall isBusy={page === 0} signature={signature} whenPressed={() => whenBack()} />
      <span>{`Page ${page + 1}`}</span>
      <Button label="Next" isSmall isBusy={!canGoOn} signature={signature} whenPressed={() => whenNext()} />
      <span className="dragoman-grow">{range}</span>
      {whenSized === undefined ? null : (
        <>
          <label htmlFor={id}>Rows per page</label>
          <select id={id} className="dragoman-input" value={String(pageSize)} onChange={(event) => whenSized(Number(event.target.value))}>
            {sizes.map((size) => (
              <option key={size} value={String(size)}>
                {size}
              </option>
            ))}
          </select>
        </>
      )}
    </nav>
  );
}
