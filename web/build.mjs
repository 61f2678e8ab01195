// Builds the page of chats (`dragoman serve`).
// Usage: node build.mjs [directory]   (default: target/web of the repository; writes its folder `chats`)
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { buildPage, prepare } from "./pages.mjs";

const source = join(dirname(fileURLToPath(import.meta.url)), "chats");
await buildPage(await prepare(process.argv[2]), { name: "chats", source, script: "src/main.tsx", styles: "src/chats.css" });
