import { useState } from "react";

export default function App() {
  const [count, setCount] = useState(0);
  return (
    <main className="counter">
      <h1>Counter</h1>
      <p>You clicked {count} {count === 1 ? "time" : "times"}.</p>
      <button type="button" onClick={() => setCount((previous) => previous + 1)}>Add</button>
      <button type="button" onClick={() => setCount(0)} disabled={count === 0}>Reset</button>
    </main>
  );
}
