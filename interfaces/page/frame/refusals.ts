// Tells the page what the browser refuses here, so that it stands in the debug console. It refuses nothing itself, with
// one kind of exception: where the browser would say nothing (a popup, a message to the page), the call is replaced by one
// that is told.
import { makeSubmitEvents } from "./forms";
import type { FromFrame } from "./protocol";

type Send = (type: FromFrame, payload: Record<string, unknown>) => void;

/** More than this in a second is not told: a loop of refusals must not fill the console. */
const MOST = 20;

export function watchRefusals(send: Send) {
  let count = 0;
  setInterval(() => (count = 0), 1000);
  const tell = (message: string) => {
    count += 1;
    if (count <= MOST) send("LOG", { level: "blocked", message });
  };
  document.addEventListener("securitypolicyviolation", (event) => {
    const what = event.blockedURI === "" ? "something" : event.blockedURI;
    tell(`The policy of the frame refused ${what} (${event.effectiveDirective}).`);
  });
  for (const name of ["localStorage", "sessionStorage", "indexedDB", "caches", "cookieStore"]) refuse(name, tell);
  const cookie = Object.getOwnPropertyDescriptor(Document.prototype, "cookie");
  if (cookie?.configurable === true) {
    const refused = () => {
      tell("The interface tried to use cookies. The frame has none.");
      throw new DOMException("Cookies cannot be used here.", "SecurityError");
    };
    Object.defineProperty(Document.prototype, "cookie", { configurable: false, get: refused, set: refused });
  }
  replace(window, "open", tell, "The interface tried to open a window.", null);
  for (const name of ["alert", "confirm", "prompt", "print"])
    replace(window, name, tell, `The interface tried to show a browser dialog (${name}).`, undefined);
  refuse("parent", tell);
  makeSubmitEvents(tell);
}

/** A property of the window that may not be read: reading it is told and throws, as the browser does. */
function refuse(name: string, tell: (message: string) => void) {
  try {
    Object.defineProperty(window, name, {
      configurable: false,
      get() {
        tell(`The interface tried to reach ${name === "parent" ? "the page around it" : name}.`);
        throw new DOMException(`${name} cannot be used here.`, "SecurityError");
      },
    });
  } catch {
    // The browser keeps it as it is, and refuses it itself.
  }
}

function replace(place: object, name: string, tell: (message: string) => void, message: string, answer: unknown) {
  Object.defineProperty(place, name, {
    configurable: false,
    value: () => {
      tell(message);
      return answer;
    },
  });
}
