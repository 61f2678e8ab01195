// Makes the pictures of docs/interfaces from the jobs that the browser test leaves behind.
// Usage: node pictures.mjs JOBS WEB OUT   (JOBS: target/tmp/browser, WEB: target/web, OUT: docs/interfaces)
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { mockApi } from "./mock.mjs";

const [jobs, web, out] = process.argv.slice(2).map((path) => resolve(path));
const { chromium } = createRequire(join(web, "package.json"))("playwright-core");
const read = (name, file) => readFileSync(join(jobs, name, file), "utf8");
const sites = new Map(["bookshop", "gallery"].map((name) => {
  const [spec, plan] = [JSON.parse(read(name, "spec.json")), JSON.parse(read(name, "plan.json"))];
  return [name, { plan, html: read(name, "page.html"), mock: mockApi(spec, plan, `/mock/${name}`) }];
}));
const server = createServer((request, response) => {
  const [, kind, name] = request.url.split(/[/?]/);
  const site = sites.get(name);
  if (site === undefined) return response.writeHead(404).end();
  if (kind === "page") return response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(site.html);
  const answer = site.mock.answer({ method: request.method, url: request.url, headers: request.headers, body: "" });
  return response.writeHead(answer.status, answer.headers).end(answer.body);
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });

/** One picture: a view at a width, after something was done with it. */
async function picture(file, name, route, width, act) {
  const context = await browser.newContext({ viewport: { width, height: Math.round(width < 500 ? 780 : width * 0.7) }, reducedMotion: "reduce", locale: "en-US" });
  context.setDefaultTimeout(60_000);
  const page = await context.newPage();
  await page.goto(`http://127.0.0.1:${server.address().port}/page/${name}#${route}`);
  await page.locator("h1").waitFor();
  await page.waitForFunction(() => document.querySelector('[data-testid="loading"]') === null);
  await act(page);
  await page.screenshot({ path: join(out, file) });
  await context.close();
}

const dark = (page) => page.getByRole("button", { name: "Dark", exact: true }).click();
const plan = (name, id) => sites.get(name).plan.resources.find((resource) => resource.id === id);
await picture("list-1280.png", "bookshop", "/Books", 1280, async (page) => {
  await page.locator("tbody .dragoman-pick").nth(1).check();
  await page.getByRole("button", { name: "Chart", exact: true }).click();
  await page.locator("polyline").waitFor();
});
await picture("edit-768.png", "bookshop", `/Books/form/${plan("bookshop", "Books").edits}?bookId=2`, 768, async (page) => {
  await page.locator("form.dragoman-form").waitFor();
  await dark(page);
});
await picture("list-375.png", "bookshop", "/Books", 375, async (page) => page.locator(".dragoman-rowlink").first().waitFor());
await picture("form-1280.png", "gallery", `/Pictures/form/${plan("gallery", "Pictures").creates}`, 1280, async (page) => {
  await page.locator('[role="combobox"]').first().click();
  await page.locator('[role="option"]').nth(2).waitFor();
});
await picture("form-375.png", "gallery", `/Pictures/form/${plan("gallery", "Pictures").creates}`, 375, dark);
await picture("answer-768.png", "gallery", "/Pictures", 768, async (page) => {
  await page.locator(".dragoman-opener").first().click();
  const form = page.locator("form.dragoman-form").first();
  await form.locator('button[type="submit"]').click();
  await form.getByRole("button", { name: "Tree" }).click();
  await form.getByText("As a command or code").click();
  await form.getByTestId("snippet").scrollIntoViewIfNeeded();
});
await picture("rtl-768.png", "gallery", "/Artists", 768, (page) =>
  page.evaluate(() => {
    document.documentElement.dir = "rtl";
  }),
);
await browser.close();
server.close();
server.closeAllConnections();
