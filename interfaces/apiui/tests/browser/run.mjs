// Opens generated pages in Chromium against mocks of their APIs and uses them by clicking.
// Usage: node run.mjs JOBS WEB   JOBS holds one folder per specification (page.html, spec.json, plan.json), WEB the
// packages of web/build.mjs. Writes JOBS/results.json (with the time of each flow) and JOBS/<name>/page.png.
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { mockApi } from "./mock.mjs";
import { flows } from "./flows.mjs";

const [jobs, web] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(web, "package.json"))("playwright-core");
/** For one thing that a page should do, and for everything: long, for machines that are busy with other things. */
const WAIT = 90_000;
const DEADLINE = 20 * 60_000;
/** Pages that are used at the same time. */
const TOGETHER = 4;
/** The checker of accessibility; it is expensive, so it looks at two pages unless everything is asked for. */
const axe = readFileSync(join(web, "node_modules/axe-core/axe.min.js"), "utf8");
const isFull = Number(process.env.DRAGOMAN_TEST_SCALE ?? 1) >= 10;
const results = {};
setTimeout(() => {
  console.error(`The browser tests took too long. So far: ${JSON.stringify(results, null, 2)}`);
  process.exit(3);
}, DEADLINE).unref();

const names = readdirSync(jobs, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort();
const read = (name, file) => readFileSync(join(jobs, name, file), "utf8");
const newSite = (name) => {
  const [spec, plan] = [JSON.parse(read(name, "spec.json")), JSON.parse(read(name, "plan.json"))];
  return { spec, plan, html: read(name, "page.html"), mock: mockApi(spec, plan, `/mock/${name}`) };
};
const sites = new Map(names.map((name) => [name, newSite(name)]));

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const [, kind, name] = request.url.split(/[/?]/);
    const site = sites.get(name);
    if (site === undefined) {
      response.writeHead(404).end();
    } else if (kind === "page") {
      response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(site.html);
    } else {
      const body = Buffer.concat(parts).toString("utf8");
      const answer = site.mock.answer({ method: request.method, url: request.url, headers: request.headers, body });
      if (answer.parts !== undefined) {
        response.writeHead(answer.status, answer.headers);
        answer.parts.forEach((part, index) => setTimeout(() => response.write(part), 50 * (index + 1)));
        return;
      }
      const empty = answer.status === 204 || answer.status === 304;
      response.writeHead(answer.status, answer.headers).end(empty ? undefined : answer.body);
    }
  });
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** Whether the window still answers: a browser on a machine that is much too busy loses one now and then. */
async function isAlive(page) {
  const late = new Promise((done) => setTimeout(() => done(false), WAIT / 3).unref());
  return Promise.race([page.evaluate(() => true).catch(() => false), late]);
}

/** One page through all flows. A window that the browser lost is opened once more, with everything as at first. */
async function use(name, site, isAgain = false) {
  // A window of its own: tabs behind another are not drawn, and wait.
  // It is read where midnight UTC is still the day before.
  const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, reducedMotion: "reduce", locale: "en-US", timezoneId: "America/New_York" });
  context.setDefaultTimeout(WAIT);
  // What the page tells goes away by itself after a while: it is kept for the flows.
  await context.addInitScript(() => {
    globalThis.toldTexts = [];
    const keep = () => {
      const text = document.querySelector(".dragoman-toast span")?.textContent;
      if (text !== undefined && globalThis.toldTexts.at(-1) !== text) globalThis.toldTexts.push(text);
    };
    new MutationObserver(keep).observe(document, { subtree: true, childList: true, characterData: true });
  });
  const page = await context.newPage();
  const problems = [];
  const refused = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A browser tells every answer above 399 as an error, sooner or later: they are counted. At the end the page is
    // attacked, and the browser tells what its policy refused.
    if (message.text().startsWith("Failed to load resource: the server responded")) refused.push(message.text());
    else if (["error", "warning"].includes(message.type()) && !site.mock.isAttacked) problems.push(`${message.type()}: ${message.text()}`);
  });
  const told = {};
  const took = {};
  results[name] = { flows: told, problems, milliseconds: took };
  await page.goto(`http://127.0.0.1:${server.address().port}/page/${name}`);
  for (const [flow, run] of Object.entries(flows)) {
    site.mock.failWith = 0;
    site.mock.refusal = undefined;
    site.mock.nothing = 0;
    site.mock.isLong = false;
    site.mock.needsCredentials = false;
    const since = Date.now();
    try {
      told[flow] = (await run({ page, axe: isFull || ["gallery", "files"].includes(name) ? axe : undefined, ...site })) ?? "done";
    } catch (error) {
      told[flow] = `failed: ${String(error.message).split("\n").slice(0, 6).join(" ")}`;
      if (!isAgain && !(await isAlive(page))) {
        console.error(`${name}: the browser lost the window in “${flow}”; it is opened once more`);
        void context.close().catch(() => {});
        sites.set(name, newSite(name));
        return use(name, sites.get(name), true);
      }
    }
    took[flow] = Date.now() - since;
    if (flow === "list") await page.screenshot({ path: join(jobs, name, "page.png") });
  }
  if (Object.values(told).some((outcome) => outcome.startsWith("failed"))) await page.screenshot({ path: join(jobs, name, "failed.png") }).catch(() => {});
  await context.close();
  if (refused.length > site.mock.refusals) problems.push(`${refused.length} answers were errors, ${site.mock.refusals} were meant to be: ${refused.join("; ")}`);
}

// The pages with the most to do first, a few at a time.
const waiting = [...sites].sort(([, a], [, b]) => b.html.length - a.html.length);
async function work() {
  for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) await use(...next);
}
await Promise.all(Array.from({ length: TOGETHER }, work));
await browser.close();
server.close();
server.closeAllConnections();
writeFileSync(join(jobs, "results.json"), JSON.stringify(results, null, 2));
