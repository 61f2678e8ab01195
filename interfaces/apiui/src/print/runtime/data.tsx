// ---- Data: any value that an API sent, shown ----

import { Fragment } from "react";
import { BAD_FLAG, Badge, toneOf } from "./parts";
import { cellText } from "./showing";
import { isNested, jsonOf, labelOf, shownText, textOf } from "./values";
import { own, ownEntries, safeUrl } from "./vetted";
import type { Column, Data } from "./types";

/** One value by the kind of its column. */
export function Cell({ value, display, field }: { value: Data; display: string; field?: string }) {
  if (value === null || value === undefined || value === "") return <span className="dragoman-hint">–</span>;
  if (display === "choice") return <Badge text={textOf(value)} tone={toneOf(value)} />;
  if (display === "boolean" || typeof value === "boolean")
    return (
      <Badge
        text={value === true ? "Yes" : "No"}
        tone={value !== true ? "plain" : BAD_FLAG.test(String(field ?? "")) ? "bad" : "good"}
      />
    );
  const isMoment =
    typeof value === "string" &&
    /^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[-+][0-9]{2}:?[0-9]{2})$/i.test(value);
  if (display === "text" && isMoment) {
    return (
      <time dateTime={value} title={value}>
        {shownText(value, "datetime")}
      </time>
    );
  }
  if (display === "date" || display === "datetime")
    return <time dateTime={textOf(value)}>{shownText(value, display)}</time>;
  const address =
    display === "email" ? safeUrl(`mailto:${value}`) : typeof value === "string" ? safeUrl(value) : undefined;
  if (address !== undefined) {
    return (
      <a href={safeUrl(address)} target="_blank" rel="noopener noreferrer">
        {textOf(value)}
      </a>
    );
  }
  const text = textOf(value);
  return <bdi>{text.length > 160 ? `${text.slice(0, 160)}…` : text}</bdi>;
}

/** A value by the format of its column. */
export function ShownValue({ column, value }: { column: Column; value: Data }) {
  if (column.format === undefined || value === null || value === undefined || value === "")
    return <Cell value={value} display={column.display} field={column.field} />;
  return <bdi title={textOf(value)}>{cellText(column, value)}</bdi>;
}

/** Any value, nested as it is. */
export function DataView({ value, depth, field }: { value: Data; depth: number; field?: string }) {
  if (value instanceof Blob) return <span>{jsonOf(value)}</span>;
  if (!isNested(value)) return <Cell value={value} display="text" field={field} />;
  if (depth > 3)
    return (
      <pre className="dragoman-raw dragoman-code" tabIndex={0}>
        {jsonOf(value)}
      </pre>
    );
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
export function DataTable({ rows, depth }: { rows: Data[]; depth: number }) {
  const shown = rows.slice(0, 100);
  const names = [...new Set(shown.slice(0, 20).flatMap((row) => Object.keys(row)))].slice(0, depth > 1 ? 6 : 12);
  return (
    <div className="dragoman-scroll" role="group" aria-label="Rows" tabIndex={0}>
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
      {rows.length > shown.length ? (
        <p className="dragoman-hint">{`The first ${shown.length} of ${rows.length} are shown.`}</p>
      ) : null}
    </div>
  );
}
