// Measures studio: its start, the first picture, an interface, a change and the way back. Part of `make bench`.
// Usage: node figures.mjs BINARY WEB   (BINARY: a release build with its page; WEB: target/web)
import { spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { specificationOf, startShop } from "./api.mjs";
import { openStage, until } from "./page.mjs";

const [binary, web] = process.argv.slice(2).map((path) => resolve(path));
const STARTS = 8;
const ROUNDS = 5;
const median = (numbers) => [...numbers].sort((a, b) => a - b)[Math.floor(numbers.length / 2)];
const shown = (numbers) => `${Math.round(median(numbers))} ms`;
const folders = [];
const newFolder = () => {
  folders.push(mkdtempSync(join(tmpdir(), "studio-")));
  return folders.at(-1);
};

/** From the start of the process until its link is printed. */
async function start(home) {
  const since = performance.now();
  const child = spawn(binary, ["studio", "--no-open", "--json"], { cwd: home, env: { PATH: process.env.PATH, HOME: home, LANG: "C.UTF-8" }, stdio: ["pipe", "pipe", "ignore"] });
  await new Promise((done) => child.stdout.once("data", done));
  const took = performance.now() - since;
  const ended = new Promise((done) => child.once("exit", done));
  child.kill("SIGTERM");
  await ended;
  return took;
}

const figures = { start: [], paint: [], interface: [], change: [], back: [] };
const home = newFolder();
await start(home);
for (let count = 0; count < STARTS; count += 1) figures.start.push(await start(home));
for (let round = 0; round < ROUNDS; round += 1) {
  const shop = await startShop();
  const stage = await openStage({ binary, web, folder: newFolder(), shop });
  const { page } = stage;
  const paint = () => page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  await until(async () => (await paint()) !== undefined, "nothing was painted");
  figures.paint.push(await paint());
  const timed = async (name, work) => {
    const since = performance.now();
    await work();
    figures[name].push(performance.now() - since);
  };
  await stage.drop("shop.yaml", specificationOf(shop.origin));
  await timed("interface", () => stage.shown(1));
  await timed("change", async () => {
    await stage.say("Show books as cards");
    await stage.shown(2);
  });
  await timed("back", () => stage.restore(2, 1, 3));
  await stage.close();
  shop.stop();
}
for (const folder of folders) rmSync(folder, { recursive: true, force: true });
console.log(`| \`dragoman studio\`, from start until its link is printed, median of ${STARTS} | ${shown(figures.start)} | | ≤ 100 ms |
| studio: from its address to the first picture in Chromium, median of ${ROUNDS} | ${shown(figures.paint)} | | ≤ 1 s |
| studio: from a dropped specification to its interface, shown | ${shown(figures.interface)} | | ≤ 30 s |
| studio: a change in words, shown | ${shown(figures.change)} | | ≤ 15 s |
| studio: another version back, from the history, shown | ${shown(figures.back)} | | ≤ 3 s |`);
