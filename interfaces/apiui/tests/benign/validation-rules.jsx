import { useState } from "react";

const RULES = [
  { name: "length", label: "At least 8 characters", test: (text) => text.length >= 8 },
  { name: "digit", label: "A digit", test: (text) => /\d/.test(text) },
  { name: "upper", label: "A capital letter", test: (text) => text !== text.toLowerCase() },
];

export default function Password({ onDone }) {
  const [text, setText] = useState("");
  const [shown, setShown] = useState(false);
  const met = RULES.filter((rule) => rule.test(text));
  const ready = met.length === RULES.length;
  return (
    <form onSubmit={(event) => { event.preventDefault(); if (ready) onDone(text); }}>
      <input type={shown ? "text" : "password"} aria-label="Password" value={text} onInput={(event) => setText(event.currentTarget.value)} />
      <button type="button" onClick={() => setShown(!shown)}>{shown ? "Hide" : "Show"}</button>
      <ul>{RULES.map((rule) => <li key={rule.name} className={met.includes(rule) ? "ok" : "todo"}>{met.includes(rule) ? "✓" : "○"} {rule.label}</li>)}</ul>
      <meter min={0} max={RULES.length} value={met.length} />
      <button type="submit" disabled={!ready}>Save</button>
    </form>
  );
}
