// ---- Tables and cards ----

import { Fragment, useId } from "react";
import { columnName } from "./column-names";
import { Cell } from "./data";
import { columnOf } from "./paging";
import { Button } from "./parts";
import { cellOf, cellText, tintOf } from "./showing";
import { textOf } from "./values";
import { own } from "./vetted";
import type { Column, Data, List, ListedResource, Order, Values } from "./types";

/** Items under the value of a field, or all of them under none. */
export function groupsOf(list: List, items: Data[]): { title?: string; items: Data[] }[] {
  const { grouping } = list;
  if (grouping === undefined) return [{ title: undefined, items }];
  const column = columnOf(list, grouping);
  const titles = [...new Set(items.map((item) => textOf(cellOf(column, item))))].toSorted();
  return titles.map((title) => ({
    title: title === "" ? "None" : title,
    items: items.filter((item) => textOf(cellOf(column, item)) === title),
  }));
}

/** One value of a row: a name in place of a key, or the value by its format. */
export function RowCell({
  resource,
  column,
  item,
  names,
}: {
  resource: ListedResource;
  column: Column;
  item: Data;
  names: Values;
}) {
  const value = cellOf(column, item);
  const name = columnName(resource, column, item, names);
  if (name !== undefined) return <bdi title={textOf(value)}>{name}</bdi>;
  if (column.format === undefined || value === null || value === undefined || value === "")
    return <Cell value={value} display={column.display} field={column.field} />;
  return <bdi title={textOf(value)}>{cellText(column, value)}</bdi>;
}

export function ItemTable({
  names,
  resource,
  columns,
  items,
  order,
  filters,
  isFiltering,
  whenSorted,
  whenFiltered,
  whenOpened,
  isCompact,
  signature,
  isPicked,
  whenPicked,
}: {
  names: Values;
  resource: ListedResource;
  columns: Column[];
  items: Data[];
  order: Order;
  filters: Values;
  isFiltering: boolean;
  whenSorted: (field: string) => void;
  whenFiltered: (field: string, text: string) => void;
  whenOpened: (item: Data) => void;
  isCompact: boolean;
  signature?: string;
  /** Whether a row is chosen; undefined where rows cannot be chosen. */
  isPicked?: (item: Data) => boolean;
  whenPicked: (items: Data[], isChosen: boolean) => void;
}) {
  return (
    <div className={isCompact ? "dragoman-scroll dragoman-compact" : "dragoman-scroll"}>
      <table className="dragoman-table">
        <caption className="dragoman-hidden">{resource.title}</caption>
        <thead>
          <tr>
            {columns.map((column, position) => (
              <th
                key={column.field}
                scope="col"
                className={column.display === "number" && position > 0 ? "dragoman-number" : ""}
                aria-sort={
                  order.field === column.field ? (order.descending === true ? "descending" : "ascending") : "none"
                }
              >
                <div>
                  {position === 0 && isPicked !== undefined ? (
                    <input
                      type="checkbox"
                      className="dragoman-pick"
                      aria-label="Select all rows"
                      checked={items.length > 0 && items.every((item) => isPicked(item))}
                      onChange={(event) => whenPicked(items, event.target.checked)}
                    />
                  ) : null}
                  <button type="button" onClick={() => whenSorted(column.field)}>
                    {column.label}
                    <span aria-hidden="true">
                      {order.field === column.field ? (order.descending === true ? "↓" : "↑") : ""}
                    </span>
                  </button>
                </div>
              </th>
            ))}
          </tr>
          {isFiltering ? (
            <tr>
              {columns.map((column) => (
                <th key={column.field}>
                  <span>
                    <input
                      type="text"
                      className="dragoman-input"
                      aria-label={`Filter by ${column.label}`}
                      value={own(filters, column.field) ?? ""}
                      onChange={(event) => whenFiltered(column.field, event.target.value)}
                    />
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
                <td
                  colSpan={columns.length}
                >{`${columnOf(resource.list, resource.list.grouping ?? "").label}: ${group.title} (${group.items.length})`}</td>
              </tr>
            )}
            {group.items.map((item, index) => (
              <tr key={index} className={tintOf(resource.list, item)}>
                {columns.map((column, position) => (
                  <td
                    key={column.field}
                    className={`${column.display === "number" && position > 0 ? "dragoman-number" : ""} ${tintOf(resource.list, item, column)}`}
                  >
                    {position === 0 ? null : (
                      <span className="dragoman-celllabel" aria-hidden="true">
                        {column.label}
                      </span>
                    )}
                    {position === 0 && isPicked !== undefined ? (
                      <input
                        type="checkbox"
                        className="dragoman-pick"
                        aria-label={`Select ${cellText(column, cellOf(column, item)) || "this row"}`}
                        checked={isPicked(item)}
                        onChange={(event) => whenPicked([item], event.target.checked)}
                      />
                    ) : null}
                    {position === 0 ? (
                      <button
                        type="button"
                        className="dragoman-rowlink"
                        data-operation={signature}
                        onClick={() => whenOpened(item)}
                      >
                        <bdi>
                          {columnName(resource, column, item, names) ??
                            (cellText(column, cellOf(column, item)) || "Open")}
                        </bdi>
                      </button>
                    ) : (
                      <RowCell resource={resource} column={column} item={item} names={names} />
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

export function CardGrid({
  names,
  resource,
  columns,
  items,
  whenOpened,
  signature,
}: {
  names: Values;
  resource: ListedResource;
  columns: Column[];
  items: Data[];
  whenOpened: (item: Data) => void;
  signature?: string;
}) {
  const head = columns.find((column) => /^(name|title|label)$/i.test(column.field)) ?? columns.at(0);
  return groupsOf(resource.list, items).map((group, at) => (
    <div key={at}>
      {group.title === undefined ? null : (
        <h2 className="dragoman-title">{`${columnOf(resource.list, resource.list.grouping ?? "").label}: ${group.title}`}</h2>
      )}
      <ul className="dragoman-cards">
        {group.items.map((item, index) => (
          <li key={index} className={`dragoman-card ${tintOf(resource.list, item)}`}>
            <h3>
              <button
                type="button"
                className="dragoman-rowlink"
                data-operation={signature}
                onClick={() => whenOpened(item)}
              >
                <bdi>{head === undefined ? "Open" : cellText(head, cellOf(head, item)) || "Open"}</bdi>
              </button>
            </h3>
            <dl className="dragoman-pairs">
              {columns
                .filter((column) => column !== head)
                .map((column) => (
                  <Fragment key={column.field}>
                    <dt>{column.label}</dt>
                    <dd className={tintOf(resource.list, item, column)}>
                      <RowCell resource={resource} column={column} item={item} names={names} />
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

export function Pager({
  page,
  total,
  count,
  pageSize,
  largest,
  canGoOn,
  signature,
  whenBack,
  whenNext,
  whenSized,
}: {
  page: number;
  total?: number;
  count: number;
  pageSize: number;
  largest?: number;
  canGoOn: boolean;
  signature?: string;
  whenBack: () => void;
  whenNext: () => void;
  whenSized?: (size: number) => void;
}) {
  const id = useId();
  const first = page * pageSize + 1;
  const range =
    count === 0
      ? ""
      : total === undefined
        ? `${first}–${first + count - 1}`
        : `${first}–${first + count - 1} of ${total}`;
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
          <select
            id={id}
            className="dragoman-input"
            value={String(pageSize)}
            onChange={(event) => whenSized(Number(event.target.value))}
          >
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
