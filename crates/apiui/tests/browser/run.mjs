// Opens generated pages in Chromium against mocks of their APIs and uses them by clicking.
// Usage: node run.mjs JOBS WEB   JOBS holds one folder per specification (page.html, spec.json, plan.json), WEB the
// packages of web/build.mjs. Writes JOBS/results.json and JOBS/<name>/page.png; prints nothing on success.
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { mockApi } from "./mock.mjs";
import { flows } from "./flows.mjs";

const [jobs, web] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(web, "package.json"))("playwright-core");
/** For one thing that a page should do, and for everything. */
const WAIT = 20_000;
const DEADLINE = 15 * 60_000;
setTimeout(() => {
  console.error("The browser tests took too long.");
  process.exit(3);
}, DEADLINE).unref();

const names = readdirSync(jobs, { withFileTypes: true }).filter((entry) => entry.isDirectory()).map((entry) => entry.name).sort();
const read = (name, file) => readFileSync(join(jobs, name, file), "utf8");
const sites = new Map(names.map((name) => {
  const [spec, plan] = [JSON.parse(read(name, "spec.json")), JSON.parse(read(name, "plan.json"))];
  return [name, { spec, plan, html: read(name, "page.html"), mock: mockApi(spec, plan, `/mock/${name}`) }];
}));

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
      const empty = answer.status === 204 || answer.status === 304;
      response.writeHead(answer.status, answer.headers).end(empty ? undefined : answer.body);
    }
  });
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));

const profile = mkdtempSync(join(tmpdir(), "dragoman-browser-"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  viewport: { width: 1280, height: 900 },
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});
context.setDefaultTimeout(WAIT);

const results = {};
for (const [name, site] of sites) {
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(`error: ${error.message}`));
  page.on("console", (message) => {
    // A browser tells every answer above 399 as an error; those are what the mock was told to give. At the end the
    // page is attacked, and the browser tells what its policy refused.
    const isAnswer = message.text().startsWith("Failed to load resource") && (site.mock.failWith !== 0 || site.mock.needsCredentials);
    const isExpected = isAnswer || site.mock.isAttacked;
    if (["error", "warning"].includes(message.type()) && !isExpected) problems.push(`${message.type()}: ${message.text()}`);
  });
  const told = {};
  await page.goto(`http://127.0.0.1:${server.address().port}/page/${name}`);
  for (const [flow, run] of Object.entries(flows)) {
    site.mock.failWith = 0;
    site.mock.needsCredentials = false;
    try {
      told[flow] = (await run({ page, ...site })) ?? "done";
    } catch (error) {
      told[flow] = `failed: ${String(error.message).split("\n").slice(0, 6).join(" ")}`;
    }
    if (flow === "list") await page.screenshot({ path: join(jobs, name, "page.png") });
  }
  if (Object.values(told).some((outcome) => outcome.startsWith("failed"))) await page.screenshot({ path: join(jobs, name, "failed.png") });
  results[name] = { flows: told, problems };
  await page.close();
}
await context.close();
server.close();
rmSync(profile, { recursive: true, force: true });
writeFileSync(join(jobs, "results.json"), JSON.stringify(results, null, 2));
