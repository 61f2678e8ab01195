import { useState } from "react";

const EMPTY = { name: "", age: "", active: false, notes: "" };

function validate(form) {
  const problems = [];
  if (form.name.trim() === "") problems.push({ field: "name", text: "A name is required." });
  if (form.age !== "" && !/^\d+$/.test(form.age)) problems.push({ field: "age", text: "The age must be a whole number." });
  return problems;
}

export default function App({ request }) {
  const [form, setForm] = useState(EMPTY);
  const [problems, setProblems] = useState([]);
  const [saved, setSaved] = useState(false);

  const handleSubmit = async (event) => {
    event.preventDefault();
    const found = validate(form);
    setProblems(found);
    if (found.length > 0) return;
    const response = await request({
      operation: "POST /people",
      method: "POST",
      path: "/people",
      body: { ...form, age: form.age === "" ? null : Number(form.age) },
    });
    setSaved(response.ok);
    if (response.ok) setForm(EMPTY);
  };

  const problemOf = (field) => problems.find((problem) => problem.field === field)?.text;

  return (
    <form onSubmit={handleSubmit} noValidate>
      <div>
        <label htmlFor="person-name">Name</label>
        <input id="person-name" value={form.name} required aria-invalid={problemOf("name") !== undefined} aria-describedby="person-name-problem"
          onChange={(event) => setForm({ ...form, name: event.target.value })} />
        <span id="person-name-problem" role="alert">{problemOf("name")}</span>
      </div>
      <div>
        <label htmlFor="person-age">Age</label>
        <input id="person-age" inputMode="numeric" value={form.age} onChange={(event) => setForm({ ...form, age: event.target.value })} />
        {problemOf("age") && <span role="alert">{problemOf("age")}</span>}
      </div>
      <label>
        <input type="checkbox" checked={form.active} onChange={(event) => setForm((old) => ({ ...old, active: event.target.checked }))} /> Active
      </label>
      <textarea aria-label="Notes" rows={4} value={form.notes} onChange={(event) => setForm((old) => ({ ...old, notes: event.target.value }))} />
      <button type="submit" data-operation="POST /people">Create</button>
      {saved && <p role="status">Saved.</p>}
    </form>
  );
}
