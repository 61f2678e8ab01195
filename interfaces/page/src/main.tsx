// The start of the page: the session, the stream of events, the components.
import { render } from "preact";
import { forgetSession, openSession, readEvents } from "./api";
import { App } from "./app";
import { applyEvent } from "./events";
import { update } from "./store";

// A file that is dropped beside its place must not replace the page.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());

async function start() {
  const hasSession = await openSession().catch(() => false);
  if (!hasSession) {
    update({ phase: "no-session" });
    return;
  }
  const end = new AbortController();
  addEventListener("pagehide", () => end.abort());
  // A page that the browser kept has lost its stream.
  addEventListener("pageshow", (event) => event.persisted && location.reload());
  try {
    await readEvents("/events", applyEvent, (isLinked) => update({ isLinked }), end.signal);
  } catch {
    forgetSession();
    update({ phase: "no-session" });
  }
}

const place = document.getElementById("studio");
if (place !== null) render(<App />, place);
void start();
