import { useState } from "react";

const DAYS = ["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"];

function weeksOf(year, month) {
  const first = new Date(year, month, 1);
  const offset = (first.getDay() + 6) % 7;
  const count = new Date(year, month + 1, 0).getDate();
  const cells = Array(offset).fill(null).concat(Array.from({ length: count }, (_, index) => index + 1));
  const weeks = [];
  while (cells.length > 0) weeks.push(cells.splice(0, 7));
  return weeks;
}

export default function Calendar({ initial }) {
  const start = initial === undefined ? new Date() : new Date(initial);
  const [month, setMonth] = useState(start.getMonth());
  const [year, setYear] = useState(start.getFullYear());
  const move = (delta) => {
    const next = new Date(year, month + delta, 1);
    setYear(next.getFullYear());
    setMonth(next.getMonth());
  };
  return (
    <table>
      <caption>
        <button type="button" aria-label="Previous month" onClick={() => move(-1)}>‹</button>
        {new Intl.DateTimeFormat("en", { month: "long", year: "numeric" }).format(new Date(year, month, 1))}
        <button type="button" aria-label="Next month" onClick={() => move(1)}>›</button>
      </caption>
      <thead><tr>{DAYS.map((day) => <th key={day} scope="col"><abbr title={day}>{day}</abbr></th>)}</tr></thead>
      <tbody>{weeksOf(year, month).map((week, index) => <tr key={index}>{week.map((day, at) => <td key={at}>{day}</td>)}</tr>)}</tbody>
    </table>
  );
}
