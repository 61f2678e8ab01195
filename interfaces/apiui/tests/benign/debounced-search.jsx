import { useEffect, useRef, useState } from "react";

export default function App({ request }) {
  const [query, setQuery] = useState("");
  const [results, setResults] = useState([]);
  const timer = useRef(0);
  const latest = useRef("");

  useEffect(() => {
    clearTimeout(timer.current);
    latest.current = query;
    if (query.length < 2) {
      setResults([]);
      return undefined;
    }
    timer.current = setTimeout(async () => {
      const response = await request({ operation: "GET /search", method: "GET", path: "/search", query: { q: query } });
      if (latest.current === query && response.ok) setResults(response.data);
    }, 300);
    return () => clearTimeout(timer.current);
  }, [query, request]);

  return (
    <div>
      <input aria-label="Search" value={query} onChange={(event) => setQuery(event.target.value)} />
      <ul aria-live="polite">{results.map((result) => <li key={result.id}>{result.title}</li>)}</ul>
    </div>
  );
}
