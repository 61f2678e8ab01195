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
const stamp = join(out, "installed.lock.json");
const lock = readFileSync(join(here, "package-lock.json"), "utf8");

mkdirSync(out, { recursive: true });
if (!existsSync(stamp) || readFileSync(stamp, "utf8") !== lock) {
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(here, name), join(out, name));
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: out, stdio: "inherit" });
  writeFileSync(stamp, lock);
}

const bundle = join(out, "react-bundle.js");
for (const name of ["entry.mjs", "shell.mjs"]) copyFileSync(join(here, name), join(out, name));
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
