import { useCallback, useEffect, useState } from "react";

function useOperation(request, call) {
  const [state, setState] = useState({ status: "loading", data: null, error: null });
  const run = useCallback(async (signal) => {
    setState({ status: "loading", data: null, error: null });
    try {
      const response = await request({ ...call, signal });
      if (response.status === 401) setState({ status: "unauthorised", data: null, error: null });
      else if (!response.ok) setState({ status: "failed", data: null, error: `${response.status}` });
      else setState({ status: "ready", data: response.data, error: null });
    } catch (error) {
      if (signal?.aborted !== true) setState({ status: "failed", data: null, error: error instanceof Error ? error.message : String(error) });
    }
  }, [request, call]);
  useEffect(() => {
    const controller = new AbortController();
    run(controller.signal);
    return () => controller.abort();
  }, [run]);
  return [state, run];
}

const CALL = { operation: "GET /pets", method: "GET", path: "/pets" };

export default function App({ request }) {
  const [state, reload] = useOperation(request, CALL);
  switch (state.status) {
    case "loading":
      return <p>Loading…</p>;
    case "unauthorised":
      return <p role="alert">Please sign in.</p>;
    case "failed":
      return <p role="alert">{state.error} <button type="button" onClick={() => reload()}>Try again</button></p>;
    default:
      return <ul>{state.data.map((pet) => <li key={pet.id}>{pet.name}</li>)}</ul>;
  }
}
