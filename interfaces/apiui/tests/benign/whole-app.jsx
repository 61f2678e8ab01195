import { useState } from "react";

const SERVERS = ["https://api.example.com/v1", "/v1", ""];

function Servers({ server, onServer }) {
  return (
    <select aria-label="Server" value={server} onChange={(event) => onServer(Number(event.target.value))}>
      {[...SERVERS].map((address, index) => <option key={address} value={index}>{address || "this site"}</option>)}
    </select>
  );
}

export default function App({ request }) {
  const [server, setServer] = useState(0);
  const [text, setText] = useState(`Using ${SERVERS[0]} of ${SERVERS.length}`);
  return (
    <div>
      <Servers server={server} onServer={(next) => { setServer(next); setText(`Using ${SERVERS.at(next)}`); }} />
      <button type="button" onClick={() => request({ operation: "GET /", method: "GET", path: "/", server })}>{text}</button>
    </div>
  );
}
