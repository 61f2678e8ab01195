import React, { memo, useCallback, useState } from "react";

const Row = memo(function Row({ item, selected, onToggle }) {
  return (
    <li>
      <label>
        <input type="checkbox" checked={selected} onChange={() => onToggle(item.id)} />
        {item.label}
      </label>
    </li>
  );
});

const Header = React.memo(({ count }) => <h2>{count} selected</h2>);

function App({ items = [] }) {
  const [selected, setSelected] = useState(() => new Set());
  const toggle = useCallback((id) => {
    setSelected((old) => {
      const next = new Set(old);
      if (next.has(id)) next.delete(id);
      else next.add(id);
      return next;
    });
  }, []);
  return (
    <React.Fragment>
      <Header count={selected.size} />
      <ul>{items.map((item) => <Row key={item.id} item={item} selected={selected.has(item.id)} onToggle={toggle} />)}</ul>
    </React.Fragment>
  );
}

export default memo(App);
