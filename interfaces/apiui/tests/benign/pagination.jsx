import { useEffect, useState } from "react";

const PAGE_SIZES = [10, 25, 50];

function Pager({ page, pages, onPage }) {
  const numbers = Array.from({ length: pages }, (_, index) => index + 1);
  return (
    <nav aria-label="Pages">
      <button type="button" disabled={page <= 1} onClick={() => onPage(page - 1)}>Previous</button>
      {numbers.map((number) => (
        <button key={number} type="button" aria-current={number === page ? "page" : undefined} onClick={() => onPage(number)}>{number}</button>
      ))}
      <button type="button" disabled={page >= pages} onClick={() => onPage(page + 1)}>Next</button>
    </nav>
  );
}

export default function App({ request }) {
  const [page, setPage] = useState(1);
  const [size, setSize] = useState(PAGE_SIZES[0]);
  const [state, setState] = useState({ items: [], total: 0 });
  useEffect(() => {
    let current = true;
    request({ operation: "GET /orders", method: "GET", path: "/orders", query: { page, size } }).then((response) => {
      if (current && response.ok) setState({ items: response.data.items, total: response.data.total });
    }).catch(() => setState({ items: [], total: 0 }));
    return () => { current = false; };
  }, [request, page, size]);
  const pages = Math.max(1, Math.ceil(state.total / size));
  return (
    <div>
      <label>Page size <select value={size} onChange={(e) => { setSize(Number(e.target.value)); setPage(1); }}>
        {PAGE_SIZES.map((one) => <option key={one} value={one}>{one}</option>)}
      </select></label>
      <ol start={(page - 1) * size + 1}>{state.items.map((item) => <li key={item.id}>{item.title}</li>)}</ol>
      <Pager page={page} pages={pages} onPage={(next) => setPage(next)} />
    </div>
  );
}
