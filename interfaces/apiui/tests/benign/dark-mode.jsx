import { createContext, useContext, useState } from "react";

const Theme = createContext("light");
const LIGHT = { page: { backgroundColor: "#ffffff", color: "#111111", minHeight: "100vh" }, card: { border: "1px solid #dddddd", padding: 16, borderRadius: 8 } };
const DARK = { page: { backgroundColor: "#111111", color: "#eeeeee", minHeight: "100vh" }, card: { border: "1px solid #444444", padding: 16, borderRadius: 8 } };

function Card({ title, children }) {
  const theme = useContext(Theme);
  const styles = theme === "dark" ? DARK : LIGHT;
  return (
    <article style={{ ...styles.card, marginBlock: 12 }}>
      <h3>{title}</h3>
      {children}
    </article>
  );
}

export default function App() {
  const [theme, setTheme] = useState("light");
  return (
    <Theme.Provider value={theme}>
      <div style={theme === "dark" ? DARK.page : LIGHT.page}>
        <button type="button" aria-pressed={theme === "dark"} onClick={() => setTheme(theme === "dark" ? "light" : "dark")}>
          {theme === "dark" ? "☀ Light" : "☾ Dark"}
        </button>
        <Card title="One"><p>First</p></Card>
        <Card title="Two"><p>Second</p></Card>
      </div>
    </Theme.Provider>
  );
}
