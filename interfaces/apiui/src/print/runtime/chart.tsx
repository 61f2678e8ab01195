// ---- A chart: a number of the rows over their time ----

import { useId, useState } from "react";
import { cellOf, cellText, numberOf } from "./showing";
import { momentOf } from "./values";
import type { Column, Data, List } from "./types";

export const CHART = { wide: 640, high: 200, edge: 8 };

/** The columns that a chart can show; none where a list has no time or no number. */
export function chartColumns(list: List): { times: Column[]; numbers: Column[] } {
  const times = list.columns.filter((column) => ["date", "datetime"].includes(column.display));
  const numbers = list.columns.filter(
    (column) => column.display === "number" && !/(^|[^a-z])(id|code|zip|year|number|version)$|Id$/i.test(column.field),
  );
  return times.length === 0 ? { times, numbers: [] } : { times, numbers };
}

export function ItemChart({ list, items }: { list: List; items: Data[] }) {
  const id = useId();
  const { times, numbers } = chartColumns(list);
  const [time, setTime] = useState(times[0].field);
  const [chosen, setChosen] = useState(numbers[0].field);
  const column = numbers.find((one) => one.field === chosen) ?? numbers[0];
  const clock = times.find((one) => one.field === time) ?? times[0];
  const found = items
    .map((item) => ({
      at: momentOf(cellOf(clock, item)),
      shown: cellText(clock, cellOf(clock, item)),
      amount: numberOf(cellOf(column, item)) ?? Number.NaN,
    }))
    .filter((one) => !Number.isNaN(one.at) && !Number.isNaN(one.amount))
    .toSorted((first, second) => first.at - second.at);
  return (
    <figure className="dragoman-chart" data-testid="chart">
      <div className="dragoman-row">
        <ChartChoice
          id={`${id}-number`}
          label="Number"
          columns={numbers}
          chosen={chosen}
          whenChosen={(next) => setChosen(next)}
        />
        <ChartChoice
          id={`${id}-time`}
          label="Over"
          columns={times}
          chosen={time}
          whenChosen={(next) => setTime(next)}
        />
      </div>
      {found.length < 2 ? (
        <p className="dragoman-hint">There are fewer than two rows with a time and a number.</p>
      ) : (
        <Line label={column.label} found={found} />
      )}
    </figure>
  );
}

export function ChartChoice({
  id,
  label,
  columns,
  chosen,
  whenChosen,
}: {
  id: string;
  label: string;
  columns: Column[];
  chosen: string;
  whenChosen: (field: string) => void;
}) {
  return (
    <div className="dragoman-field">
      <label htmlFor={id}>{label}</label>
      <select id={id} className="dragoman-input" value={chosen} onChange={(event) => whenChosen(event.target.value)}>
        {columns.map((column) => (
          <option key={column.field} value={column.field}>
            {column.label}
          </option>
        ))}
      </select>
    </div>
  );
}

export function Line({ label, found }: { label: string; found: { at: number; shown: string; amount: number }[] }) {
  const amounts = found.map((one) => one.amount);
  const [least, most] = [Math.min(...amounts), Math.max(...amounts)];
  const [first, last] = [found[0], found[found.length - 1]];
  const { wide, high, edge } = CHART;
  const places = found.map((one, index) => {
    const share = last.at === first.at ? index / (found.length - 1) : (one.at - first.at) / (last.at - first.at);
    const level = most === least ? 0.5 : (one.amount - least) / (most - least);
    return { x: edge + share * (wide - 2 * edge), y: high - edge - level * (high - 2 * edge) };
  });
  return (
    <>
      <svg
        viewBox={`0 0 ${wide} ${high}`}
        role="img"
        aria-label={`${label}: ${found.length} values from ${least} to ${most}, ${first.shown} to ${last.shown}`}
      >
        <line x1={edge} x2={wide - edge} y1={high - edge} y2={high - edge} className="dragoman-axis" />
        <line x1={edge} x2={wide - edge} y1={edge} y2={edge} className="dragoman-axis" />
        <polyline className="dragoman-curve" points={places.map((one) => `${one.x},${one.y}`).join(" ")} />
        {places.length > 120
          ? null
          : places.map((one, index) => <circle key={index} className="dragoman-dot" cx={one.x} cy={one.y} r="3" />)}
      </svg>
      <figcaption className="dragoman-row">
        <bdi>{first.shown}</bdi>
        <span className="dragoman-grow">{`${label}: ${least.toLocaleString()} – ${most.toLocaleString()}`}</span>
        <bdi>{last.shown}</bdi>
      </figcaption>
    </>
  );
}
