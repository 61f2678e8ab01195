import { useId, useState } from "react";

const TABS = [
  { name: "overview", title: "Overview" },
  { name: "settings", title: "Settings" },
];

function Overview() {
  return <p>Everything at a glance.</p>;
}

function Settings() {
  return <p>Nothing to set.</p>;
}

export default function App() {
  const [active, setActive] = useState("overview");
  const base = useId();
  return (
    <div>
      <div role="tablist">
        {TABS.map((tab, index) => (
          <button
            key={tab.name}
            id={`${base}-tab-${tab.name}`}
            type="button"
            role="tab"
            aria-selected={tab.name === active}
            tabIndex={tab.name === active ? 0 : -1}
            onClick={() => setActive(tab.name)}
            onKeyDown={(event) => {
              if (event.key === "ArrowRight") setActive(TABS.at((index + 1) % TABS.length).name);
              if (event.key === "ArrowLeft") setActive(TABS.at(index - 1).name);
            }}
          >
            {tab.title}
          </button>
        ))}
      </div>
      <div role="tabpanel">{active === "overview" ? <Overview /> : <Settings />}</div>
    </div>
  );
}
