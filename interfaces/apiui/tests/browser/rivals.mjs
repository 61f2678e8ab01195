// Opens the same specification in a page of ours and in Swagger UI, Scalar and Redoc, one after the other, in one run: until
// its first operation is seen, how long the page is busy, and how long a click takes until the next picture.
// Usage: node rivals.mjs BINARY WEB PACKAGES [SPEC]   (PACKAGES: target/rivals, with node_modules of the three; SPEC: JSON,
// otherwise one with 500 operations is made). Prints rows for docs/benchmarks.md.
import { execFileSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { extname, join, resolve } from "node:path";

const [binary, web, packages, given] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(web, "package.json"))("playwright-core");
const ROUNDS = 3;
const CLICKS = 5;
const WAIT = 120_000;
const folder = mkdtempSync(join(tmpdir(), "rivals-"));
const specification = given === undefined ? madeSpecification(500) : readFileSync(given, "utf8");
const source = join(folder, "spec.json");
writeFileSync(source, specification);
execFileSync(binary, ["generate", source, "--html", "-o", join(folder, "page.html")], { env: { ...process.env, HOME: folder }, stdio: "ignore" });

const versionOf = (name) => JSON.parse(readFileSync(join(packages, "node_modules", name, "package.json"), "utf8")).version;
const page = (head, body) => `<!doctype html><html lang="en"><head><meta charset="utf-8"><title>API</title>${head}</head><body>${body}</body></html>`;
/** Each with its page, a text that is seen when the first operation is, and what is clicked. */
const RIVALS = {
  Dragoman: { html: readFileSync(join(folder, "page.html"), "utf8"), seen: "[data-ui-resource]", clicked: "[data-ui-resource]" },
  [`Swagger UI ${versionOf("swagger-ui-dist")}`]: {
    html: page(
      '<link rel="stylesheet" href="/files/swagger-ui-dist/swagger-ui.css">',
      '<div id="app"></div><script src="/files/swagger-ui-dist/swagger-ui-bundle.js"></script><script>SwaggerUIBundle({ url: "/spec.json", dom_id: "#app" });</script>',
    ),
    seen: ".opblock-summary",
    clicked: ".opblock-summary-control",
  },
  [`Scalar ${versionOf("@scalar/api-reference")}`]: {
    html: page(
      "",
      '<div id="app"></div><script src="/files/@scalar/api-reference/dist/browser/standalone.js"></script><script>Scalar.createApiReference("#app", { url: "/spec.json", withDefaultFonts: false, telemetry: false });</script>',
    ),
    seen: 'a[href*="tag/"], [id*="tag/"]',
    clicked: 'aside button[aria-expanded], aside a, [class*="sidebar"] button, [class*="sidebar"] a',
  },
  [`Redoc ${versionOf("redoc")}`]: {
    html: page("", '<div id="app"></div><script src="/files/redoc/bundles/redoc.standalone.js"></script><script>Redoc.init("/spec.json", {}, document.getElementById("app"));</script>'),
    seen: '[data-section-id*="operation/"], [data-section-id*="paths/"]',
    clicked: 'li[data-item-id] > label',
  },
};

const TYPES = { ".js": "text/javascript", ".css": "text/css", ".json": "application/json" };
const server = createServer((request, response) => {
  const path = decodeURIComponent(new URL(request.url, "http://x").pathname);
  if (path === "/spec.json") return response.writeHead(200, { "Content-Type": "application/json" }).end(specification);
  if (path.startsWith("/page/")) return response.writeHead(200, { "Content-Type": "text/html" }).end(RIVALS[path.slice(6)]?.html ?? "");
  if (!path.startsWith("/files/") || path.includes("..")) return response.writeHead(404).end();
  try {
    const bytes = readFileSync(join(packages, "node_modules", path.slice(7)));
    return response.writeHead(200, { "Content-Type": TYPES[extname(path)] ?? "application/octet-stream" }).end(bytes);
  } catch {
    return response.writeHead(404).end();
  }
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const origin = `http://127.0.0.1:${server.address().port}`;

async function measure(name, { seen, clicked }) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu", "--disable-background-networking"] });
  const tab = await (await browser.newContext({ viewport: { width: 1280, height: 900 } })).newPage();
  tab.setDefaultTimeout(WAIT);
  // Nothing from elsewhere: only what the packages bring.
  await tab.route((url) => url.origin !== origin, (route) => route.abort());
  await tab.addInitScript((seen) => {
    globalThis.busy = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => (globalThis.busy += entry.duration))).observe({ type: "longtask", buffered: true });
    const look = () => {
      if (document.querySelector(seen) === null) return;
      watch.disconnect();
      requestAnimationFrame(() => setTimeout(() => (globalThis.seenAt = performance.now())));
    };
    const watch = new MutationObserver(look);
    watch.observe(document, { subtree: true, childList: true });
    addEventListener("DOMContentLoaded", look);
  }, seen);
  await tab.goto(`${origin}/page/${encodeURIComponent(name)}`);
  await tab.waitForFunction(() => globalThis.seenAt !== undefined);
  // What goes on after that counts as busy too: until a second passes without a long task.
  await tab.waitForFunction(() => {
    if (globalThis.lastBusy !== globalThis.busy) {
      globalThis.lastBusy = globalThis.busy;
      globalThis.quietSince = performance.now();
    }
    return performance.now() - globalThis.quietSince > 1000;
  }, undefined, { polling: 100 });
  const view = await tab.evaluate(() => ({ seen: globalThis.seenAt, busy: globalThis.busy, heap: performance.memory.usedJSHeapSize }));
  const clicks = [];
  for (let count = 0; count < CLICKS; count += 1) {
    const took = await tab.evaluate(async ([clicked, count]) => {
      const elements = [...document.querySelectorAll(clicked)].filter((element) => element.checkVisibility());
      const element = elements[Math.min(count + 1, elements.length - 1)];
      if (element === undefined) return undefined;
      const since = performance.now();
      element.click();
      await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
      return performance.now() - since;
    }, [clicked, count]);
    if (took !== undefined) clicks.push(took);
    await tab.waitForTimeout(300);
  }
  await browser.close();
  return { ...view, click: clicks.length === 0 ? NaN : Math.max(...clicks) };
}

const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const rounds = Object.fromEntries(Object.keys(RIVALS).map((name) => [name, []]));
// In turn, so that a machine that wavers does so for all of them.
for (let round = 0; round < ROUNDS; round += 1) for (const [name, rival] of Object.entries(RIVALS)) rounds[name].push(await measure(name, rival));
server.close();
rmSync(folder, { recursive: true, force: true });
for (const [name, all] of Object.entries(rounds)) {
  const of = (key) => median(all.map((one) => one[key]));
  console.log(`| ${name} | ${Math.round(of("seen"))} ms | ${Math.round(of("busy"))} ms | ${Math.round(of("click"))} ms | ${(of("heap") / 2 ** 20).toFixed(0)} MiB |`);
}

/** Resources with five operations each. */
function madeSpecification(operations) {
  const [paths, schemas] = [{}, {}];
  const text = { type: "string" };
  for (let number = 0; number < operations / 5; number += 1) {
    const name = `Thing${number}`;
    const reference = { $ref: `#/components/schemas/${name}` };
    const body = { required: true, content: { "application/json": { schema: reference } } };
    const answer = (schema) => ({ 200: { description: "Done", content: { "application/json": { schema } } } });
    const id = { name: "id", in: "path", required: true, schema: { type: "integer" } };
    const operation = (verb, more) => ({ tags: [`Things ${number}`], operationId: `${verb}${name}`, summary: `${verb} ${name}`, ...more });
    schemas[name] = { type: "object", required: ["name"], properties: { id: { type: "integer", readOnly: true }, name: text, state: { type: "string", enum: ["new", "old"] }, price: { type: "number" }, createdAt: { type: "string", format: "date-time" }, note: text } };
    paths[`/things${number}`] = { get: operation("List", { responses: answer({ type: "array", items: reference }) }), post: operation("Create", { requestBody: body, responses: answer(reference) }) };
    paths[`/things${number}/{id}`] = { parameters: [id], get: operation("Read", { responses: answer(reference) }), put: operation("Replace", { requestBody: body, responses: answer(reference) }), delete: operation("Delete", { responses: { 204: { description: "Gone" } } }) };
  }
  return JSON.stringify({ openapi: "3.0.3", info: { title: "Many things", version: "1" }, servers: [{ url: "https://things.example" }], paths, components: { schemas } });
}
