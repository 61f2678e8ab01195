import { useState } from "react";

export default function App({ request }) {
  const [files, setFiles] = useState([]);
  const [state, setState] = useState("idle");
  const upload = async () => {
    setState("sending");
    try {
      const response = await request({
        operation: "POST /files",
        method: "POST",
        path: "/files",
        headers: { "Content-Type": "multipart/form-data" },
        body: { file: files, note: "from the form" },
      });
      setState(response.ok ? "sent" : "failed");
    } catch {
      setState("failed");
    }
  };
  return (
    <section>
      <input type="file" multiple accept="image/*" aria-label="Files" onChange={(event) => setFiles(Array.from(event.target.files ?? []))} />
      <ul>{files.map((file) => <li key={file.name}>{file.name} ({Math.ceil(file.size / 1024)} kB, {file.type || "unknown"})</li>)}</ul>
      <button type="button" disabled={files.length === 0 || state === "sending"} onClick={upload}>Upload</button>
      {state !== "idle" && <p role="status">{state}</p>}
    </section>
  );
}
