import { useState } from "react";

const CSS = `
/* the look */
.dragoman { --accent: #0a58ca; --line: #d0d7de; font-family: system-ui, sans-serif; color-scheme: light dark; }
.dragoman table { border-collapse: collapse; width: 100%; }
.dragoman th, .dragoman td { border-bottom: 1px solid var(--line); padding: 6px 10px; text-align: left; }
.dragoman tr:nth-child(even) td { background: rgba(0, 0, 0, 0.03); }
.dragoman button:hover:not(:disabled) { background-color: var(--accent); color: white; cursor: pointer; }
.dragoman .dragoman-chip::before { content: "• "; }
.dragoman > nav [aria-current="page"] { font-weight: bold; }
@media (prefers-color-scheme: dark) { .dragoman { --line: #30363d; color: #eee; background: #0d1117; } }
@media (max-width: 40rem) { .dragoman td { display: block; } }
@keyframes dragoman-spin { from { transform: rotate(0deg); } 50.5% { opacity: 0.5; } to { transform: rotate(360deg); } }
.dragoman .dragoman-spinner { animation: dragoman-spin 1s linear infinite; }
`;

export default function App() {
  const [rows] = useState([{ id: 1, name: "a" }, { id: 2, name: "b" }]);
  return (
    <div className="dragoman">
      <style>{CSS}</style>
      <table><tbody>{rows.map((row) => <tr key={row.id}><td>{row.name}</td></tr>)}</tbody></table>
    </div>
  );
}
