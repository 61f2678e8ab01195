// The start of the page: the session, the list, the chat that the address names.
import { render } from "preact";
import { keepListFresh, openFromAddress, readAbout, readList } from "./actions";
import { CallError } from "../../common/problem";
import { forgetSession, openSession } from "./api";
import { App } from "./app";
import { update } from "./store";

async function start() {
  const hasSession = await openSession().catch(() => false);
  if (!hasSession) {
    update({ phase: "no-session" });
    return;
  }
  for (let wait = 250; ; wait = Math.min(wait * 2, 5000)) {
    try {
      await readAbout();
      break;
    } catch (error) {
      if (error instanceof CallError && error.status === 401) {
        forgetSession();
        update({ phase: "no-session" });
        return;
      }
      update({ isLinked: false });
      await new Promise((done) => setTimeout(done, wait));
    }
  }
  addEventListener("hashchange", openFromAddress);
  openFromAddress();
  await readList();
  keepListFresh();
}

// A page that the browser kept has lost its stream.
addEventListener("pageshow", (event) => event.persisted && location.reload());
const place = document.getElementById("chats");
if (place !== null) render(<App />, place);
void start();
