import { useMemo } from "react";

export default function App({ orders = [] }) {
  const groups = useMemo(() => {
    const found = new Map();
    for (const order of orders) {
      const day = new Date(order.createdAt).toISOString().slice(0, 10);
      const list = found.get(day) ?? [];
      list.push(order);
      found.set(day, list);
    }
    return [...found.entries()].sort(([a], [b]) => b.localeCompare(a));
  }, [orders]);
  return (
    <dl>
      {groups.map(([day, list]) => (
        <div key={day}>
          <dt>{new Date(day).toLocaleDateString("en", { weekday: "long", month: "short", day: "numeric" })}</dt>
          <dd>{list.length} orders, {list.reduce((sum, order) => sum + order.total, 0).toFixed(2)} in all</dd>
        </div>
      ))}
    </dl>
  );
}
