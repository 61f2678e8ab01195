import { useEffect, useState } from "react";

function nextCursor(link) {
  const match = /<([^>]+)>;\s*rel="next"/.exec(link ?? "");
  if (match === null) return null;
  const parts = match[1].split("?")[1] ?? "";
  for (const pair of parts.split("&")) {
    const [name, value = ""] = pair.split("=");
    if (decodeURIComponent(name) === "cursor") return decodeURIComponent(value);
  }
  return null;
}

export default function App({ request }) {
  const [events, setEvents] = useState([]);
  const [cursor, setCursor] = useState(undefined);
  const [pending, setPending] = useState(false);
  const load = async (from) => {
    setPending(true);
    const response = await request({ operation: "GET /events", method: "GET", path: "/events", query: from ? { cursor: from } : {} });
    if (response.ok) {
      setEvents((old) => [...old, ...response.data]);
      setCursor(nextCursor(response.headers.link));
    }
    setPending(false);
  };
  useEffect(() => {
    load(undefined);
  }, []);
  return (
    <div aria-busy={pending}>
      {events.map((one) => <p key={one.id}>{one.summary}</p>)}
      {cursor && <button type="button" disabled={pending} onClick={() => load(cursor)}>More</button>}
    </div>
  );
}
