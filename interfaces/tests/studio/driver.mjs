// Runs one flow in Chromium against the real program.
// Usage: node driver.mjs FLOW BINARY WEB FOLDER   (WEB: target/web; FOLDER: an empty folder for the home and pictures)
// DRAGOMAN_STUDIO_ASSETS names a folder (target/web/studio) whose files are used in place of those in the program.
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { startShop } from "./api.mjs";
import { attacks } from "./attacks.mjs";
import { flows } from "./flows.mjs";
import { startModel } from "./model.mjs";
import { openStage } from "./page.mjs";
import { replyWithTool } from "./plugins.mjs";

const [name, ...paths] = process.argv.slice(2);
const [binary, web, folder] = paths.map((path) => resolve(path));
const DEADLINE = 15 * 60_000;
setTimeout(() => {
  console.error(`The flow ${name} took too long.`);
  process.exit(3);
}, DEADLINE).unref();

const shop = await startShop();
const model = name === "tools" ? await startModel(replyWithTool) : undefined;
const settings = name === "consoles" ? ["--log-level", "info"] : [];
const stage = await openStage({ binary, web, folder, shop, settings, configuration: model?.settings });
let failure;
try {
  await { ...flows, attacks }[name](stage);
  if (stage.problems.length > 0) throw new Error(stage.problems.join("; "));
} catch (error) {
  failure = error;
  await stage.page.screenshot({ path: join(folder, "failed.png") }).catch(() => {});
}
writeFileSync(join(folder, "figures.json"), JSON.stringify(stage.figures));
await stage.close();
shop.stop();
model?.stop();
if (failure !== undefined) {
  console.error(`${name}: ${failure.stack}\npicture: ${join(folder, "failed.png")}\nstudio told: ${stage.studio.told}`);
  process.exit(1);
}
process.exit(0);
