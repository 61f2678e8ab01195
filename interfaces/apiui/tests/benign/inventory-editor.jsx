import { useState } from "react";

let counter = 0;

function nextId() {
  counter += 1;
  return `row-${counter}`;
}

export default function Editor() {
  const [rows, setRows] = useState([{ id: nextId(), sku: "", count: 0 }]);
  const change = (index, patch) => setRows((old) => old.map((row, at) => (at === index ? { ...row, sku: patch.sku ?? row.sku, count: patch.count ?? row.count } : row)));
  const totals = { rows: rows.length, count: 0 };
  for (const row of rows) totals.count += row.count;
  return (
    <div>
      {rows.map((row, index) => (
        <div key={row.id}>
          <input aria-label="SKU" value={row.sku} onChange={(event) => change(index, { sku: event.target.value })} />
          <input aria-label="Count" type="number" min={0} value={row.count} onChange={(event) => change(index, { count: event.target.valueAsNumber || 0 })} />
          <button type="button" onClick={() => setRows((old) => old.filter((_, at) => at !== index))}>Remove</button>
        </div>
      ))}
      <button type="button" onClick={() => setRows([...rows, { id: nextId(), sku: "", count: 0 }])}>Add row</button>
      <p>{totals.rows} rows, {totals.count} pieces</p>
    </div>
  );
}
