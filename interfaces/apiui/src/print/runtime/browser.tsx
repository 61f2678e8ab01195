// ---- The rows of a page: searched, filtered, sorted ----

import { useEffect, useId, useState } from "react";
import { PLAN } from "../plan";
import { BulkBar, rowMark } from "./bulk";
import { ItemChart, chartColumns } from "./chart";
import { useColumnNames } from "./column-names";
import { columnOf, shownColumns } from "./paging";
import { Button, EmptyState } from "./parts";
import { cellOf, cellText, meets } from "./showing";
import { ListSlot } from "./slots";
import { CardGrid, ItemTable, Pager } from "./table";
import { compareValues, fieldOf, inText, includesText, isNested, scalarText, textOf } from "./values";
import { own, ownEntries, withAll, withOwn } from "./vetted";
import type { Column, Condition, Data, List, ListedResource, Operation, Resource, Ui, Values } from "./types";

/** The items that are loaded: searched, filtered, sorted and grouped here. */
export function ItemBrowser({
  ui,
  resource,
  operation,
  items: sent,
  known,
  conditions,
  isPaged,
  pageSize,
}: {
  ui: Ui;
  resource: ListedResource;
  operation: Operation;
  items: Data[];
  known: Values | undefined;
  /** What rows must meet to be shown at all. */
  conditions: Condition[];
  isPaged: Data;
  pageSize: number;
}) {
  const { list } = resource;
  const items =
    conditions.length === 0 ? sent : sent.filter((item) => conditions.every((one) => meets(list, one, item)));
  const names = useColumnNames(ui, resource);
  const kept = ui.keptView("rows");
  const [wanted, setWanted] = useState(kept?.wanted ?? "");
  const [filters, setFilters] = useState(kept?.filters ?? {});
  const [isFiltering, setIsFiltering] = useState(kept?.isFiltering ?? false);
  const [order, setOrder] = useState(kept?.order ?? list.sort ?? { field: undefined });
  const [page, setPage] = useState(kept?.page ?? 0);
  const [size, setSize] = useState(kept?.size ?? pageSize);
  const [fields, setFields] = useState(kept?.fields ?? shownColumns(list).map((column) => column.field));
  const [isDrawn, setIsDrawn] = useState(kept?.isDrawn ?? false);
  const [chosen, setChosen] = useState<string[]>([]);
  const columns = list.columns.filter((column) => fields.includes(column.field));
  useEffect(() => {
    ui.keepView("rows", { wanted, filters, isFiltering, order, page, size, fields, isDrawn });
  }, [wanted, filters, isFiltering, order, page, size, fields, isDrawn]);
  const active = ownEntries(filters).filter(([, text]) => text !== "");
  const found = items.filter((item) => {
    const has = (field: string, text: string) => {
      const column = columnOf(list, field);
      return (
        includesText(cellOf(column, item), column.display, text) ||
        (column.format !== undefined &&
          cellText(column, cellOf(column, item)).toLowerCase().includes(text.trim().toLowerCase()))
      );
    };
    const isFound = wanted.trim() === "" || (list.search ?? []).some((field) => has(field, wanted));
    return isFound && active.every(([field, text]) => has(field, text));
  });
  const direction = order.descending === true ? -1 : 1;
  const sorted =
    order.field === undefined
      ? found
      : found.toSorted(
          (first, second) =>
            direction *
            compareValues(cellOf(columnOf(list, order.field), first), cellOf(columnOf(list, order.field), second)),
        );
  const pages = PLAN.pagination && !isPaged ? Math.max(1, Math.ceil(sorted.length / size)) : 1;
  const at = Math.min(page, pages - 1);
  const shown = pages > 1 ? sorted.slice(at * size, (at + 1) * size) : sorted;
  const layout = own(list, "layout") ?? own(PLAN, "layout");
  const setFilter = (field: string, text: string) => {
    setPage(0);
    setFilters(withOwn(filters, field, text));
  };
  const open = (item: Data) =>
    ui.goTo({ kind: "item", resource: resource.id, item, known: withAll(known, keysOf(ui, resource, item)) });
  const sortBy = (field: string) =>
    setOrder(
      order.field !== field
        ? { field }
        : order.descending === true
          ? { field: undefined }
          : { field, descending: true },
    );
  const markOf = (item: Data) => rowMark(ui, resource, known, item);
  const picked = items.filter((item) => chosen.includes(markOf(item)));
  const pick = (some: Data[], isChosen: boolean) => {
    const marks = some.map(markOf);
    setChosen([...chosen.filter((mark) => !marks.includes(mark)), ...(isChosen ? marks : [])]);
  };
  // Rows without a certain key cannot be told apart, so they cannot be chosen.
  const canPick = items.length > 0 && new Set(items.map(markOf)).size === items.length;
  const canDraw = items.length > 1 && chartColumns(list).numbers.length > 0;
  // A table that nothing matches keeps its head: the filters are in it.
  return (
    <>
      <BrowserBar
        list={list}
        fields={fields}
        whenChosen={(next) => setFields(next)}
        hasTable={layout !== "cards"}
        items={items}
        wanted={wanted}
        filters={filters}
        isFiltering={isFiltering}
        whenSearched={(text) => {
          setPage(0);
          setWanted(text);
        }}
        whenFiltered={(field, text) => setFilter(field, text)}
        whenToggled={() => setIsFiltering(!isFiltering)}
        count={found.length}
        isDrawn={canDraw ? isDrawn : undefined}
        whenDrawn={() => setIsDrawn(!isDrawn)}
      />
      <ListSlot ui={ui} resource={resource} items={found} />
      {canDraw && isDrawn ? <ItemChart list={list} items={found} /> : null}
      {picked.length === 0 ? null : (
        <BulkBar
          ui={ui}
          resource={resource}
          columns={columns}
          items={picked}
          known={known}
          whenCleared={() => setChosen([])}
        />
      )}
      {items.length === 0 ? null : layout === "cards" ? (
        <CardGrid
          names={names}
          resource={resource}
          columns={columns}
          items={shown}
          whenOpened={(item) => open(item)}
          signature={detailSignature(resource)}
        />
      ) : (
        <ItemTable
          names={names}
          resource={resource}
          columns={columns}
          items={shown}
          order={order}
          filters={filters}
          isFiltering={isFiltering}
          whenSorted={(field) => sortBy(field)}
          whenFiltered={(field, text) => setFilter(field, text)}
          whenOpened={(item) => open(item)}
          isCompact={layout === "compact"}
          signature={detailSignature(resource)}
          isPicked={canPick ? (item) => chosen.includes(markOf(item)) : undefined}
          whenPicked={(some, isChosen) => pick(some, isChosen)}
        />
      )}
      {shown.length > 0 ? null : (
        <EmptyState
          title={sent.length === 0 ? `No ${inText(resource.title)}` : "Nothing matches"}
          text={
            sent.length === 0
              ? "The API sent an empty list."
              : items.length === 0
                ? "None of the loaded rows passes the fixed filters of this view."
                : "Change or clear the search and the filters."
          }
        >
          <Button label="Load again" signature={operation.signature} whenPressed={() => ui.refresh()} />
        </EmptyState>
      )}
      {PLAN.pagination && !isPaged && sorted.length > Math.min(size, list.pageSize) ? (
        <Pager
          page={at}
          total={sorted.length}
          count={shown.length}
          pageSize={size}
          canGoOn={at + 1 < pages}
          whenBack={() => setPage(at - 1)}
          whenNext={() => setPage(at + 1)}
          whenSized={(next) => {
            setSize(next);
            setPage(0);
          }}
        />
      ) : null}
    </>
  );
}

export function detailSignature(resource: Resource) {
  return resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail).signature;
}

/** Whether a value can name an item in an address. */
export function isKeyValue(value: Data): boolean {
  return (
    value !== undefined &&
    value !== null &&
    typeof value !== "boolean" &&
    !isNested(value) &&
    !["", ".", ".."].includes(scalarText(value))
  );
}

/** The parameters that an item's own fields fill: those of the specification and those that the reader chose. No guesses. */
export function keysOf(ui: Ui, resource: Resource, item: Data): Values {
  const given = (resource.keys ?? []).filter((key) => key.guessed !== true).map((key) => [key.parameter, key.field]);
  const chosen = ownEntries(own(ui.keyFields, resource.id));
  const pairs = [...given, ...chosen].map(([parameter, field]) => [parameter, fieldOf(item, field)]);
  return Object.fromEntries(pairs.filter((pair) => isKeyValue(pair.at(1))));
}

export function BrowserBar({
  list,
  fields,
  whenChosen,
  hasTable,
  items,
  wanted,
  filters,
  isFiltering,
  whenSearched,
  whenFiltered,
  whenToggled,
  count,
  isDrawn,
  whenDrawn,
}: {
  list: List;
  fields: string[];
  whenChosen: (fields: string[]) => void;
  hasTable?: boolean;
  items: Data[];
  wanted: string;
  filters: Values;
  isFiltering: boolean;
  whenSearched: (text: string) => void;
  whenFiltered: (field: string, text: string) => void;
  whenToggled: () => void;
  count: number;
  isDrawn?: boolean;
  whenDrawn: () => void;
}) {
  const id = useId();
  const hasSearch = (list.search ?? []).length > 0;
  const names = (list.search ?? []).map((field) => columnOf(list, field).label.toLowerCase());
  return (
    <div className="dragoman-toolbar">
      {hasSearch ? (
        <div className="dragoman-field" role="search" aria-label="Loaded rows">
          <label htmlFor={id}>Search</label>
          <input
            id={id}
            type="search"
            className="dragoman-input"
            value={wanted}
            placeholder={names.length > 3 ? "Search…" : `Search by ${names.join(", ")}…`}
            data-testid="search-bar"
            onChange={(event) => whenSearched(event.target.value)}
          />
        </div>
      ) : null}
      {(list.filters ?? []).map((field) => (
        <FieldFilter
          key={field}
          column={columnOf(list, field)}
          items={items}
          text={own(filters, field) ?? ""}
          whenFiltered={(text) => whenFiltered(field, text)}
        />
      ))}
      <span className="dragoman-hint">{`${count} ${count === 1 ? "row" : "rows"}`}</span>
      <span className="dragoman-grow" />
      {list.columns.length > 1 ? (
        <ColumnChoice list={list} fields={fields} whenChosen={(next) => whenChosen(next)} />
      ) : null}
      {isDrawn === undefined ? null : (
        <Button label="Chart" kind="quiet" isSmall isPressed={isDrawn} whenPressed={() => whenDrawn()} />
      )}
      {hasTable === false ? null : (
        <Button
          label={isFiltering ? "Hide filters" : "Filter"}
          kind="quiet"
          isSmall
          whenPressed={() => whenToggled()}
        />
      )}
    </div>
  );
}

/** Which columns are shown; the last one stays. */
export function ColumnChoice({
  list,
  fields,
  whenChosen,
}: {
  list: List;
  fields: string[];
  whenChosen: (fields: string[]) => void;
}) {
  const id = useId();
  const without = (field: string) => fields.filter((one) => one !== field);
  return (
    <details className="dragoman-columns">
      <summary>Columns</summary>
      <div className="dragoman-columnlist" role="group" aria-label="Columns">
        {list.columns.map((column, index) => (
          <label key={column.field} className="dragoman-check" htmlFor={`dragoman-column-${id}-${index}`}>
            <input
              id={`dragoman-column-${id}-${index}`}
              type="checkbox"
              checked={fields.includes(column.field)}
              disabled={fields.length === 1 && fields.includes(column.field)}
              onChange={(event) => whenChosen(event.target.checked ? [...fields, column.field] : without(column.field))}
            />
            <span>{column.label}</span>
          </label>
        ))}
      </div>
    </details>
  );
}

/** A filter that is always in view: a choice where the values are few. */
export function FieldFilter({
  column,
  items,
  text,
  whenFiltered,
}: {
  column: Column;
  items: Data[];
  text: string;
  whenFiltered: (text: string) => void;
}) {
  const id = useId();
  const values = [...new Set([...(column.choices ?? []), ...items.map((item) => textOf(cellOf(column, item)))])]
    .filter((value) => value !== "")
    .toSorted();
  const isChoice =
    column.display === "choice" || column.display === "boolean" || (values.length > 0 && values.length <= 12);
  return (
    <div className="dragoman-field">
      <label htmlFor={id}>{column.label}</label>
      {isChoice ? (
        <select
          id={id}
          className="dragoman-input"
          value={text}
          data-testid="field-filter"
          onChange={(event) => whenFiltered(event.target.value)}
        >
          <option value="">All</option>
          {values.map((value) => (
            <option key={value} value={value}>
              {value}
            </option>
          ))}
        </select>
      ) : (
        <input
          id={id}
          type="text"
          className="dragoman-input"
          value={text}
          data-testid="field-filter"
          onChange={(event) => whenFiltered(event.target.value)}
        />
      )}
    </div>
  );
}
