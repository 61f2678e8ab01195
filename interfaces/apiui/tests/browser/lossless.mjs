// Edits random records in forms, in a real browser, against an API that keeps what it receives as text, and compares:
// what was not touched comes back exactly, what was touched has the new value, and nothing else is sent.
// Usage: node lossless.mjs JOB WEB COUNT   JOB holds page.html and plan.json of tests/specs/ledger.yaml.
// Writes JOB/lossless.json: the number of forms, and what was wrong.
import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { createServer } from "node:http";
import { join, resolve } from "node:path";
import { exactTree, exactText, without, withValue, valueAtPath } from "./exact.mjs";
import { randomFor, record, touches } from "./records.mjs";

const [job, web] = process.argv.slice(2, 4).map((path) => resolve(path));
const count = Number(process.argv[4]);
const { chromium } = createRequire(join(web, "package.json"))("playwright-core");
const plan = JSON.parse(readFileSync(join(job, "plan.json"), "utf8"));
const html = readFileSync(join(job, "page.html"), "utf8");
const WAIT = 60_000;
const PAGES = 2;

const records = new Map();
const written = new Map();
const reads = new Map();

const server = createServer((request, response) => {
  const parts = [];
  request.on("data", (part) => parts.push(part));
  request.on("end", () => {
    const path = request.url.split("?")[0];
    if (path === "/page") {
      response.writeHead(200, { "Content-Type": "text/html; charset=utf-8" }).end(html);
      return;
    }
    const name = path.replace(/^\/mock\/ledger/, "");
    const kept = records.get(name);
    if (request.method === "GET") {
      reads.set(name, (reads.get(name) ?? 0) + 1);
      if (kept === undefined) response.writeHead(404, { "Content-Type": "application/json" }).end("{}");
      else response.writeHead(200, { "Content-Type": "application/json", ...(kept.etag === undefined ? {} : { ETag: kept.etag }) }).end(kept.text);
      return;
    }
    written.set(name, { method: request.method, text: Buffer.concat(parts).toString("utf8"), match: request.headers["if-match"] });
    response.writeHead(200, { "Content-Type": "application/json" }).end("{}");
  });
}).listen(0, "127.0.0.1");
await new Promise((done) => server.once("listening", done));

const browser = await chromium.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
});

/** The operation that edits the items of a resource. */
function edits(id) {
  return plan.resources.find((resource) => resource.id === id).edits;
}

const KINDS = {
  put: { resource: "Accounts", path: "accounts", key: "accountId", serverSet: [["id"], ["createdAt"], ["lines", "*", "locked"]] },
  patch: { resource: "Entries", path: "entries", key: "entryId", serverSet: [] },
};

async function until(isReady, what) {
  const end = Date.now() + WAIT;
  while (!isReady()) {
    if (Date.now() > end) throw new Error(`waited too long for ${what}`);
    await new Promise((done) => setTimeout(done, 20));
  }
}

/** One form: opened, touched here and there, saved, compared. */
async function edit(page, number) {
  const random = randomFor(number);
  const kind = random.pick(["put", "patch"]);
  const { resource, path, key, serverSet } = KINDS[kind];
  const id = kind === "put" ? String(9_007_199_254_740_993n + BigInt(number)) : `e${number}`;
  const name = `/${path}/${id}`;
  const before = record(random, kind, id);
  const etag = kind === "put" && random.chance(0.5) ? `"v${number}"` : undefined;
  records.set(name, { text: before, etag });
  const form = page.locator("form.dragoman-form");
  // The form before is gone, so that nothing of it is taken for this one.
  await page.evaluate(() => {
    location.hash = "/";
  });
  await form.waitFor({ state: "detached" });
  await page.evaluate((route) => {
    location.hash = route;
  }, `/${resource}/form/${edits(resource)}?${key}=${id}`);
  await form.waitFor();
  let expected = exactTree(before);
  const touched = [];
  for (const touch of touches(random, kind, expected, random.pick([0, 1, 1, 2, 3]))) {
    await touch.apply(form);
    expected = touch.value === undefined ? without(expected, touch.path) : withValue(expected, touch.path, touch.value);
    touched.push(touch);
  }
  const isSilent = kind === "patch" && exactText(expected) === exactText(exactTree(before));
  await form.locator('button[type="submit"]').click();
  if (isSilent) {
    await page.getByText("Nothing was changed").first().waitFor();
    if (written.has(name)) throw new Error(`sent ${written.get(name).text} without a change`);
    return;
  }
  await until(() => written.has(name), `the request of ${name}; the page says ${await page.locator(".dragoman-problem, [data-testid=failure]").allTextContents().catch(() => "")}`);
  // The page leaves the form when it has the answer; before that it would leave the next one.
  await form.waitFor({ state: "detached" });
  const sent = written.get(name);
  if (etag !== undefined && sent.match !== etag) throw new Error(`If-Match was ${sent.match}, wanted ${etag}`);
  if (kind === "put" && etag === undefined && reads.get(name) < 2) throw new Error("the record was not read again before it was replaced");
  const wanted = kind === "put" ? serverSet.reduce((tree, one) => without(tree, one), expected) : changes(exactTree(before), expected, touched);
  if (exactText(exactTree(sent.text)) !== exactText(wanted)) throw new Error(`sent ${sent.text}\n  wanted ${exactText(wanted)}\n  before ${before}\n  touched ${JSON.stringify(touched.map((one) => [one.path, one.value === undefined ? "gone" : exactText(one.value)]))}`);
}

/** The fields that a patch holds: those on the first level that are touched, null where they are gone. */
function changes(before, after, touched) {
  const names = [...new Set(touched.map((one) => one.path[0]))].filter((name) => exactText(valueAtPath(before, [name])) !== exactText(valueAtPath(after, [name])));
  // What a record did not have comes in the order of the form.
  const { input } = plan.operations[edits(KINDS.patch.resource)].body;
  const fields = (input.shape === undefined ? input.fields : plan.shapes[input.shape].fields).map((field) => field.name);
  const added = [...after.keys()].filter((name) => !before.has(name)).sort((a, b) => fields.indexOf(a) - fields.indexOf(b));
  const order = [...before.keys(), ...added];
  return new Map(order.filter((name) => names.includes(name)).map((name) => [name, valueAtPath(after, [name]) ?? null]));
}

const problems = [];
let next = 0;
async function work(worker) {
  const context = await browser.newContext({ viewport: { width: 1100, height: 900 }, reducedMotion: "reduce", timezoneId: worker === 0 ? "America/New_York" : "Asia/Kolkata" });
  context.setDefaultTimeout(WAIT);
  // One of the browsers does not hand the source text of numbers to a reviver, as older ones do not.
  if (worker === 1) {
    await context.addInitScript(() => {
      const parse = JSON.parse;
      JSON.parse = (text, reviver) => (reviver === undefined ? parse(text) : parse(text, (key, value) => reviver(key, value)));
    });
  }
  const page = await context.newPage();
  page.on("pageerror", (error) => problems.push(`error in the page: ${error.message}`));
  await page.goto(`http://127.0.0.1:${server.address().port}/page`);
  while (next < count && problems.length < 5) {
    const number = next;
    next += 1;
    try {
      await edit(page, number);
    } catch (error) {
      problems.push(`form ${number}: ${error.message}`);
      await page.screenshot({ path: join(job, `form-${number}.png`), fullPage: true });
    }
  }
  await context.close();
}
await Promise.all(Array.from({ length: PAGES }, (_, worker) => work(worker)));
await browser.close();
server.close();
writeFileSync(join(job, "lossless.json"), JSON.stringify({ forms: next, problems }, null, 2));
