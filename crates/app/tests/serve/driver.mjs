// Runs one flow in Chromium against the real program.
// Usage: node driver.mjs FLOW BINARY WEB FOLDER   (WEB: target/web; FOLDER: an empty folder for the home and pictures)
// DRAGOMAN_CHATS_ASSETS names a folder (target/web/chats) whose files are used in place of those in the program.
import { join, resolve } from "node:path";
import { flows } from "./flows.mjs";
import { openStage } from "./page.mjs";

const [name, ...paths] = process.argv.slice(2);
const [binary, web, folder] = paths.map((path) => resolve(path));
const DEADLINE = 8 * 60_000;
setTimeout(() => {
  console.error(`The flow ${name} took too long.`);
  process.exit(3);
}, DEADLINE).unref();

const stage = await openStage({ binary, web, folder });
let failure;
try {
  await flows[name](stage);
  if (stage.problems.length > 0) throw new Error(stage.problems.join("; "));
} catch (error) {
  failure = error;
  await stage.page.screenshot({ path: join(folder, "failed.png") }).catch(() => {});
}
await stage.close();
if (failure !== undefined) {
  console.error(`${name}: ${failure.stack}\npicture: ${join(folder, "failed.png")}\nserve told: ${stage.server.told}`);
  process.exit(1);
}
process.exit(0);
