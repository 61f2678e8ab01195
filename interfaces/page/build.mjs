// Builds the page of studio and the script of its frame.
// Usage: node build.mjs [directory]   (default: target/web of the repository; writes its folder `studio`)
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPage, keepAll, prepare } from "../../web/pages.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const tools = await prepare(process.argv[2]);
await buildPage(tools, { name: "studio", source: here, script: "src/main.tsx", styles: "src/styles/all.css" });
const frame = await tools.build({
  ...tools.options("studio"),
  entryPoints: { frame: join(here, "frame/main.ts"), "frame-styles": join(here, "frame/frame.css") },
});
keepAll(frame.outputFiles);
