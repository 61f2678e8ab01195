import { useState, useMemo, useCallback } from "react";

function own(object, key) {
  const name = String(key);
  return isPlainData(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}
function isPlainData(value) {
  if (value === null || typeof value !== "object") return false;
  if (Object.hasOwn(value, "$$typeof") || Object.hasOwn(value, "stateNode")) return false;
  const prototype = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null;
}

const compare = (left, right) => {
  if (left === right) return 0;
  if (left === undefined || left === null) return 1;
  if (right === undefined || right === null) return -1;
  if (typeof left === "number" && typeof right === "number") return left - right;
  return String(left).localeCompare(String(right), undefined, { numeric: true, sensitivity: "base" });
};

function SortButton({ label, active, descending, onSort }) {
  return (
    <button type="button" aria-pressed={active} onClick={() => onSort()}>
      {label} {active ? (descending ? "▼" : "▲") : ""}
    </button>
  );
}

export default function App({ rows = [], columns = [] }) {
  const [sort, setSort] = useState({ column: null, descending: false });
  const toggle = useCallback((column) => {
    setSort((old) => ({ column, descending: old.column === column ? !old.descending : false }));
  }, []);
  const sorted = useMemo(() => {
    if (sort.column === null) return rows;
    const factor = sort.descending ? -1 : 1;
    return [...rows].sort((a, b) => factor * compare(own(a, sort.column), own(b, sort.column)));
  }, [rows, sort]);
  return (
    <table>
      <thead>
        <tr>
          {columns.map((column) => (
            <th key={column.name} aria-sort={sort.column === column.name ? (sort.descending ? "descending" : "ascending") : "none"}>
              <SortButton label={column.title} active={sort.column === column.name} descending={sort.descending} onSort={() => toggle(column.name)} />
            </th>
          ))}
        </tr>
      </thead>
      <tbody>
        {sorted.map((row, index) => (
          <tr key={index}>{columns.map((column) => <td key={column.name}>{String(own(row, column.name) ?? "")}</td>)}</tr>
        ))}
      </tbody>
    </table>
  );
}
