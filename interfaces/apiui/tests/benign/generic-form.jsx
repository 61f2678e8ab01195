import { useState } from "react";

function isPlainData(value) {
  if (value === null || typeof value !== "object") return false;
  if (Object.hasOwn(value, "$$typeof") || Object.hasOwn(value, "stateNode")) return false;
  const prototype = Object.getPrototypeOf(value);
  return Array.isArray(value) || prototype === null || Object.getPrototypeOf(prototype) === null;
}
function own(object, key) {
  const name = String(key);
  return isPlainData(object) && Object.hasOwn(object, name) ? object[name] : undefined;
}
// a copy with one more property
function withOwn(object, key, value) {
  const name = String(key);
  return isPlainData(object) && !Array.isArray(object)
    ? { ...object, [name]: value }
    : { [name]: value };
}

const FIELDS = [
  { name: "type", label: "Type", kind: "select", choices: ["cat", "dog"] },
  { name: "birthday", label: "Birthday", kind: "date" },
  { name: "location", label: "Location", kind: "text" },
];

function Field({ field, value, onChange }) {
  const id = `pet-field-${field.name}`;
  if (field.kind === "select") {
    return (
      <p>
        <label htmlFor={id}>{field.label}</label>
        <select id={id} value={value ?? ""} onChange={(event) => onChange(field.name, event.target.value)}>
          {field.choices.map((choice) => <option key={choice}>{choice}</option>)}
        </select>
      </p>
    );
  }
  return (
    <p>
      <label htmlFor={id}>{field.label}</label>
      <input id={id} type={field.kind} name={field.name} value={value ?? ""}
        onChange={(event) => {
          const { name, value: typed } = event.target;
          onChange(name, typed);
        }} />
    </p>
  );
}

export default function PetForm({ onSave }) {
  const [form, setForm] = useState({});
  return (
    <form onSubmit={(event) => { event.preventDefault(); onSave(form); }}>
      {FIELDS.map((field) => (
        <Field key={field.name} field={field} value={own(form, field.name)} onChange={(name, value) => setForm((old) => withOwn(old, name, value))} />
      ))}
      <button>Save</button>
    </form>
  );
}
