import { useState } from "react";

const styles = {
  bar: { height: 12, borderRadius: 6, background: "linear-gradient(90deg, #06c, #0c6)", transition: "width 200ms ease" },
  track: { backgroundColor: "#eee", borderRadius: 6, overflow: "hidden" },
};

export default function App({ value = 0.4, color }) {
  const [hover, setHover] = useState(false);
  const percent = Math.round(value * 100);
  return (
    <div onMouseEnter={() => setHover(true)} onMouseLeave={() => setHover(false)} style={{ padding: "1rem", cursor: hover ? "pointer" : "default" }}>
      <div style={styles.track} role="progressbar" aria-valuenow={percent} aria-valuemin={0} aria-valuemax={100}>
        <div style={{ ...styles.bar, width: `${percent}%` }} />
      </div>
      <p style={{ color, fontWeight: hover ? 700 : 400, textAlign: "right" }}>{percent}%</p>
    </div>
  );
}
