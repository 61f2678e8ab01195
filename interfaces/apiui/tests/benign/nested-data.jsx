import { useState } from "react";

function isPlainData(value) {
  if (value === null || typeof value !== "object") return false;
  if (Object.hasOwn(value, "$$typeof") || Object.hasOwn(value, "stateNode")) return false;
  const prototype = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null;
}
function ownEntries(object) {
  return isPlainData(object) ? Object.entries(object) : [];
}

function Tree({ name, value, depth = 0 }) {
  const [open, setOpen] = useState(depth < 1);
  if (!isPlainData(value)) return <div style={{ paddingLeft: depth * 12 }}><b>{name}</b>: {String(value)}</div>;
  const entries = Array.isArray(value) ? value.map((item, index) => [String(index), item]) : ownEntries(value);
  return (
    <div style={{ paddingLeft: depth * 12 }}>
      <button type="button" aria-expanded={open} onClick={() => setOpen(!open)}>{open ? "−" : "+"} {name} ({entries.length})</button>
      {open && entries.map(([key, inner]) => <Tree key={key} name={key} value={inner} depth={depth + 1} />)}
    </div>
  );
}

export default function App({ data }) {
  return <Tree name="response" value={data} />;
}
