// Lists every property name that an object of a browser, of JavaScript or of React has, for the checker's list of
// names that a module may not read without `own`. Run by hand when browsers or React grow; the result is committed.
// Usage: node platform-names.mjs target/web > ../src/check/platform_names.txt   (after build.mjs; needs Chromium)
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { join, resolve } from "node:path";

const out = resolve(process.argv[2]);
const { chromium } = createRequire(join(out, "package.json"))("playwright-core");
const bundle = readFileSync(join(out, "react-bundle.js"), "utf8");

// Served from localhost: a secure context, in which all interfaces exist.
const server = createServer((_, response) => {
  response.setHeader("Content-Type", "text/html");
  response.end(`<!doctype html><div id="root"></div><script>${bundle}</script>`);
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--disable-component-update", "--disable-sync", "--enable-experimental-web-platform-features"],
});
const page = await browser.newPage();
await page.goto(`http://localhost:${server.address().port}/`);
const names = await page.evaluate(async () => {
  const found = new Set();
  const seen = new Set();
  const queue = [];
  const add = (value) => {
    if (value !== null && (typeof value === "object" || typeof value === "function") && !seen.has(value)) {
      seen.add(value);
      queue.push(value);
    }
  };
  // A click through a small React tree, so that fibers, hooks, events and elements exist to be walked.
  const { react, runtime, mount } = globalThis.dragomanReact;
  const context = react.createContext(0);
  const events = ["onClick", "onChange", "onKeyDown", "onFocus", "onSubmit", "onDrop", "onWheel", "onPaste", "onTouchStart", "onPointerDown", "onInput"];
  const handlers = Object.fromEntries(events.map((name) => [name, (event) => { event.preventDefault(); for (let o = event; o; o = Object.getPrototypeOf(o)) Object.getOwnPropertyNames(o).forEach((n) => found.add(n)); }]));
  function App() {
    react.useState(0); react.useEffect(() => {}); react.useMemo(() => 0, []); react.useReducer((a) => a, 0);
    const element = runtime.jsx("form", { ...handlers, ref: react.useRef(null), children: runtime.jsx("input", { id: "field", defaultValue: "" }) });
    add(element);
    return runtime.jsx(context.Provider, { value: 1, children: element });
  }
  add(context); add(react.memo(App)); add(react.lazy(() => null)); add(react.createRef());
  mount(App, document.getElementById("root"));
  await new Promise((done) => setTimeout(done, 200));
  const field = document.getElementById("field");
  for (const event of [new MouseEvent("click", { bubbles: true, view: window }), new KeyboardEvent("keydown", { bubbles: true }), new FocusEvent("focusin", { bubbles: true }), new InputEvent("input", { bubbles: true }), new DragEvent("drop", { bubbles: true }), new WheelEvent("wheel", { bubbles: true }), new ClipboardEvent("paste", { bubbles: true }), new PointerEvent("pointerdown", { bubbles: true }), new SubmitEvent("submit", { bubbles: true })]) {
    add(event);
    field.dispatchEvent(event);
  }
  add(document.getElementById("root"));
  for (const tag of ["a", "form", "input", "select", "option", "iframe", "object", "embed", "script", "style", "link", "canvas", "video", "img", "template", "details", "dialog"]) add(document.createElement(tag));
  for (const tag of ["svg", "a", "use", "script", "foreignObject", "animate"]) add(document.createElementNS("http://www.w3.org/2000/svg", tag));
  for (const value of [async () => {}, function* () {}, async function* () {}, [].values(), new Map().entries(), Promise.resolve(), /x/d.exec("x"), "", 1, true, 1n, Symbol.iterator, new Error("x"), (function () { return arguments; })(), new Intl.Locale("en"), globalThis]) add(Object(value));
  while (queue.length > 0) {
    const object = queue.pop();
    add(Object.getPrototypeOf(object));
    for (const name of Object.getOwnPropertyNames(object)) {
      // An indexed name is no name, and a random suffix is refused by its prefix.
      if (!/^\d+$/.test(name) && !name.includes("$")) found.add(name);
      const property = Object.getOwnPropertyDescriptor(object, name);
      add(property?.get);
      if (property && "value" in property) add(property.value);
      // Getters of singletons (navigator, document, …) lead to more interfaces; of prototypes they throw.
      else if (object === globalThis || object === document || object === navigator) { try { add(object[name]); } catch {} }
    }
  }
  return [...found].filter((name) => /^[A-Za-z_][A-Za-z0-9_]*$/.test(name));
});
await browser.close();
server.close();
// Minified names, constants of graphics interfaces, names of this script and names with a random end are of no use.
const own = ["dragomanReact", "react", "runtime", "mount"];
const isKept = (name) => name.length > 2 && !/^[A-Z][A-Z0-9_]*$|^on[A-Z]|^_react/.test(name) && !own.includes(name);
const kept = names.filter(isKept).sort();
process.stdout.write(kept.join("\n") + "\n");
