import { useCallback, useState } from "react";

export default function App({ request }) {
  const [token, setToken] = useState("");
  const [user, setUser] = useState("");
  const [password, setPassword] = useState("");
  const [message, setMessage] = useState("");

  const send = useCallback(async (call) => {
    const headers = { Accept: "application/json" };
    if (token !== "") headers.Authorization = `Bearer ${token}`;
    else if (user !== "") headers.Authorization = "Basic " + btoa(`${user}:${password}`);
    const response = await request({ ...call, headers });
    if (response.status === 401) setMessage("Please sign in: the server did not accept the credentials.");
    return response;
  }, [request, token, user, password]);

  return (
    <fieldset>
      <legend>Access</legend>
      <label>Token <input type="password" autoComplete="off" value={token} onChange={(event) => setToken(event.target.value)} /></label>
      <label>User <input value={user} autoComplete="username" onChange={(event) => setUser(event.target.value)} /></label>
      <label>Password <input type="password" autoComplete="current-password" value={password} onChange={(event) => setPassword(event.target.value)} /></label>
      <button type="button" onClick={async () => {
        const response = await send({ operation: "GET /me", method: "GET", path: "/me" });
        if (response.ok) setMessage(`Hello, ${response.data.name}`);
      }}>Check</button>
      <output>{message}</output>
    </fieldset>
  );
}
