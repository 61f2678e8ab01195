// Fetches React and esbuild as the lock file names them and bundles React's production build into one script.
// Usage: node build.mjs [directory]   (default: target/web of the repository; writes react-bundle.js there)
// The source tree stays clean: packages are installed in the output directory. Nothing is fetched when the lock
// file has not changed since the last run.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));
const out = resolve(process.argv[2] ?? join(here, "../../../target/web"));
const read = (path) => readFileSync(join(here, path), "utf8");

mkdirSync(out, { recursive: true });
install(out, "ci", read("package.json"), read("package-lock.json"));
// The packages of a generated project, for the test that builds and checks one. Without them that test is left out.
try {
  install(join(out, "project"), "install", read("../../commands/src/project/package.json").replace("{{name}}", "project"), read("project-lock.json"));
} catch (error) {
  console.error(`The packages of generated projects could not be installed: ${error.message}`);
}

function install(folder, command, manifest, lock) {
  const stamp = join(folder, "installed.lock.json");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  mkdirSync(folder, { recursive: true });
  writeFileSync(join(folder, "package.json"), manifest);
  writeFileSync(join(folder, "package-lock.json"), lock);
  // On Windows npm is a script, which only a shell starts.
  execFileSync("npm", [command, "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: folder, stdio: "inherit", shell: process.platform === "win32" });
  writeFileSync(stamp, lock);
}

const bundle = join(out, "react-bundle.js");
copyFileSync(join(here, "entry.mjs"), join(out, "entry.mjs"));
copyFileSync(join(here, "../src/print/runtime/shell.ts"), join(out, "shell.ts"));
const { build } = await import(pathToFileURL(createRequire(join(out, "package.json")).resolve("esbuild")));
const { outputFiles } = await build({
  entryPoints: [join(out, "entry.mjs")],
  outfile: bundle,
  write: false,
  bundle: true,
  minify: true,
  format: "iife",
  target: "es2022",
  charset: "ascii",
  legalComments: "inline",
  define: { "process.env.NODE_ENV": '"production"' },
  logLevel: "warning",
});
// Cargo looks at the file's time: the same bytes are not written again.
const [{ contents }] = outputFiles;
if (!existsSync(bundle) || !readFileSync(bundle).equals(contents)) writeFileSync(bundle, contents);
