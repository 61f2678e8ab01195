// Builds the page of studio, the script of its frame, and the page of chats (web/chats).
// Usage: node build.mjs [directory]   (default: target/web of the repository; writes its folders `studio` and `chats`)
// crates/apiui/web/build.mjs must have run before: esbuild and React are installed by its lock file. The page's own package
// is installed by the lock file here. Nothing is fetched when the lock file has not changed since the last run.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const web = resolve(process.argv[2] ?? join(here, "../../target/web"));
const packages = join(web, "studio-packages");
const out = join(web, "studio");
const chats = { source: join(here, "../chats"), out: join(web, "chats") };

install();
const { build } = await import(pathToFileURL(createRequire(join(web, "package.json")).resolve("esbuild")));
const common = {
  write: false,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "utf8",
  legalComments: "inline",
  define: { "process.env.NODE_ENV": '"production"' },
  nodePaths: [join(packages, "node_modules"), join(web, "node_modules")],
  logLevel: "warning",
  outdir: out,
};
mkdirSync(out, { recursive: true });
mkdirSync(chats.out, { recursive: true });
const page = await build({
  ...common,
  entryPoints: { studio: join(here, "src/main.tsx"), "studio-styles": join(here, "src/styles/all.css") },
  jsx: "automatic",
  jsxImportSource: "preact",
});
const frame = await build({
  ...common,
  entryPoints: { frame: join(here, "frame/main.ts"), "frame-styles": join(here, "frame/frame.css") },
});
for (const { path, contents } of [...page.outputFiles, ...frame.outputFiles]) keep(path.replace("-styles.css", ".css"), contents);
keep(join(out, "index.html"), readFileSync(join(here, "index.html")));
keep(join(out, "icon.svg"), readFileSync(join(here, "icon.svg")));
const chatPage = await build({
  ...common,
  outdir: chats.out,
  entryPoints: { chats: join(chats.source, "src/main.tsx"), "chats-styles": join(chats.source, "src/chats.css") },
  jsx: "automatic",
  jsxImportSource: "preact",
});
for (const { path, contents } of chatPage.outputFiles) keep(path.replace("-styles.css", ".css"), contents);
for (const name of ["index.html", "icon.svg"]) keep(join(chats.out, name), readFileSync(join(chats.source, name)));

/** Cargo looks at the time of a file: the same bytes are not written again. */
function keep(path, contents) {
  if (!existsSync(path) || !readFileSync(path).equals(contents)) writeFileSync(path, contents);
}

function install() {
  const [stamp, lock] = [join(packages, "installed.lock.json"), readFileSync(join(here, "package-lock.json"), "utf8")];
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  mkdirSync(packages, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(here, name), join(packages, name));
  // On Windows npm is a script, which only a shell starts.
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: packages, stdio: "inherit", shell: process.platform === "win32" });
  writeFileSync(stamp, lock);
}
