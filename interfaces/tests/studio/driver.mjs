// Runs one flow in Chromium against the real program.
// Usage: node driver.mjs FLOW BINARY WEB FOLDER   (WEB: target/web; FOLDER: an empty folder for the home and pictures)
// DRAGOMAN_STUDIO_ASSETS names a folder (target/web/studio) whose files are used in place of those in the program.
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { driverArguments, runFlow, startDeadline } from "../../../web/common/tests/starters.mjs";
import { startShop } from "./api.mjs";
import { attacks } from "./attacks.mjs";
import { flows } from "./flows.mjs";
import { startModel } from "./model.mjs";
import { openStage } from "./page.mjs";
import { replyWithTool } from "./plugins.mjs";

const { name, binary, web, folder } = driverArguments();
const deadline = startDeadline(name, 15);
const shop = await startShop();
const model = name === "tools" ? await startModel(replyWithTool) : undefined;
const settings = name === "consoles" ? ["--log-level", "info"] : [];
const stage = await openStage({ binary, web, folder, shop, settings, configuration: model?.settings });

async function end() {
  writeFileSync(join(folder, "figures.json"), JSON.stringify(stage.figures));
  await stage.close();
  shop.stop();
  model?.stop();
}
await runFlow({ name, folder, deadline, stage, flow: { ...flows, attacks }[name], end, told: () => stage.studio.told });
