// Runs one flow in Chromium against the real program.
// Usage: node driver.mjs FLOW BINARY WEB FOLDER   (WEB: target/web; FOLDER: an empty folder for the home and pictures)
// DRAGOMAN_CHATS_ASSETS names a folder (target/web/chats) whose files are used in place of those in the program.
import { driverArguments, runFlow, startDeadline } from "../../../../web/common/tests/starters.mjs";
import { flows } from "./flows.mjs";
import { openStage } from "./page.mjs";

const { name, binary, web, folder } = driverArguments();
const deadline = startDeadline(name, 8);
const stage = await openStage({ binary, web, folder });
await runFlow({ name, folder, deadline, stage, flow: flows[name], end: () => stage.close(), told: () => stage.server.told });
