import { useState, useTransition } from "react";

export default function App({ request, initial = [] }) {
  const [items, setItems] = useState(initial);
  const [failed, setFailed] = useState(null);
  const [pending, startTransition] = useTransition();
  const remove = async (item) => {
    const before = items;
    startTransition(() => setItems((old) => old.filter((one) => one !== item)));
    const response = await request({ operation: "DELETE /items/{id}", method: "DELETE", path: `/items/${encodeURIComponent(item.id)}` });
    if (!response.ok) {
      setItems(before);
      setFailed(item.id);
    }
  };
  return (
    <ul aria-busy={pending}>
      {items.map((item) => (
        <li key={item.id} className={["item", failed === item.id && "failed"].filter(Boolean).join(" ")}>
          {item.name}
          <button type="button" data-operation="DELETE /items/{id}" onClick={() => remove(item)}>Delete</button>
        </li>
      ))}
    </ul>
  );
}
