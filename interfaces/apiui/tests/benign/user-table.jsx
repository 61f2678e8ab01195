import React, { useEffect, useState } from "react";

const COLUMNS = ["name", "email", "createdAt"];

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

function Cell({ value }) {
  if (value === null || value === undefined) return <span className="muted">—</span>;
  if (typeof value === "boolean") return <span>{value ? "Yes" : "No"}</span>;
  if (typeof value === "object") return <code>{JSON.stringify(value)}</code>;
  return <span>{String(value)}</span>;
}

export default function App({ request }) {
  const [users, setUsers] = useState([]);
  const [loading, setLoading] = useState(true);
  const [error, setError] = useState(null);

  useEffect(() => {
    const controller = new AbortController();
    async function load() {
      setLoading(true);
      setError(null);
      try {
        const response = await request({ operation: "listUsers", method: "GET", path: "/users", signal: controller.signal });
        if (!response.ok) throw new Error(`The server answered ${response.status}`);
        setUsers(Array.isArray(response.data) ? response.data : response.data.items ?? []);
      } catch (problem) {
        if (!controller.signal.aborted) setError(problem.message);
      } finally {
        setLoading(false);
      }
    }
    load();
    return () => controller.abort();
  }, [request]);

  if (loading) return <p role="status">Loading…</p>;
  if (error) return <p role="alert">{error}</p>;
  return (
    <table>
      <caption>Users</caption>
      <thead>
        <tr>{COLUMNS.map((column) => <th key={column} scope="col">{column}</th>)}</tr>
      </thead>
      <tbody>
        {users.map((user, index) => (
          <tr key={user.id ?? index} data-operation="GET /users">
            {COLUMNS.map((column) => <td key={column}><Cell value={own(user, column)} /></td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
