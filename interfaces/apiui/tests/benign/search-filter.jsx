import { useMemo, useState } from "react";

const PRODUCTS = [
  { id: 1, name: "Lamp", price: 25.5, tags: ["home", "light"] },
  { id: 2, name: "Desk", price: 180, tags: ["home", "office"] },
  { id: 3, name: "Pen", price: 2.75, tags: ["office"] },
];

const money = new Intl.NumberFormat("en", { style: "currency", currency: "EUR" });

export default function App() {
  const [query, setQuery] = useState("");
  const [tag, setTag] = useState("");
  const tags = useMemo(() => [...new Set(PRODUCTS.flatMap((product) => product.tags))].sort(), []);
  const visible = useMemo(() => {
    const needle = query.trim().toLowerCase();
    return PRODUCTS
      .filter((product) => tag === "" || product.tags.includes(tag))
      .filter((product) => product.name.toLowerCase().includes(needle))
      .toSorted((a, b) => a.price - b.price);
  }, [query, tag]);

  return (
    <section aria-labelledby="products-heading">
      <h2 id="products-heading">Products</h2>
      <label htmlFor="product-search">Search</label>
      <input id="product-search" type="search" value={query} onChange={(e) => setQuery(e.target.value)} placeholder="Name…" />
      <select aria-label="Tag" value={tag} onChange={(event) => setTag(event.target.value)}>
        <option value="">All tags</option>
        {tags.map((one) => <option key={one} value={one}>{one}</option>)}
      </select>
      {visible.length === 0 ? (
        <p>Nothing matches “{query}”.</p>
      ) : (
        <ul>
          {visible.map((product) => (
            <li key={product.id}>
              <strong>{product.name}</strong> <span>{money.format(product.price)}</span>
              {product.tags.length > 0 && <small> ({product.tags.join(", ")})</small>}
            </li>
          ))}
        </ul>
      )}
    </section>
  );
}
