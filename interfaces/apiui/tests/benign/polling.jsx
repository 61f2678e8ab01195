import { useEffect, useState } from "react";

function useInterval(run, milliseconds) {
  useEffect(() => {
    const timer = setInterval(() => run(), milliseconds);
    return () => clearInterval(timer);
  }, [run, milliseconds]);
}

export default function App({ request }) {
  const [health, setHealth] = useState({ status: "unknown", checked: null });
  const [paused, setPaused] = useState(false);
  useInterval(async () => {
    if (paused) return;
    const response = await request({ operation: "GET /health", method: "GET", path: "/health" });
    setHealth({ status: response.ok ? "up" : "down", checked: new Date() });
  }, 5000);
  return (
    <p>
      <strong>{health.status}</strong> {health.checked !== null && <time dateTime={health.checked.toISOString()}>{health.checked.toLocaleTimeString()}</time>}
      <button type="button" onClick={() => setPaused((value) => !value)}>{paused ? "Resume" : "Pause"}</button>
    </p>
  );
}
