import { useEffect, useRef, useState } from "react";

export default function App({ items = [] }) {
  const [chosen, setChosen] = useState(null);
  const heading = useRef(null);
  const item = items.find((one) => one.id === chosen);
  useEffect(() => {
    if (heading.current) heading.current.focus({ preventScroll: true });
  }, [chosen]);
  return (
    <div style={{ display: "grid", gridTemplateColumns: "16rem 1fr" }}>
      <nav aria-label="Items">
        <ul>
          {items.map((one) => (
            <li key={one.id}>
              <button type="button" aria-current={one.id === chosen} onClick={() => setChosen(one.id)}>{one.name}</button>
            </li>
          ))}
        </ul>
      </nav>
      <article>
        {item === undefined ? <p>Choose an item.</p> : (
          <>
            <h2 ref={heading} tabIndex={-1}>{item.name}</h2>
            <pre>{JSON.stringify(item, null, 2)}</pre>
          </>
        )}
      </article>
    </div>
  );
}
