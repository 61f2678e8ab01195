// What the builds of both pages share: the packages by the lock file here, the options of esbuild, and files that are written only
// when they change. Nothing is fetched when the lock file has not changed since the last run.
import { execFileSync } from "node:child_process";
import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const here = dirname(fileURLToPath(import.meta.url));

/**
 * `folder` is the folder of a command line, or `target/web` of the repository.
 * interfaces/apiui/web/build.mjs must have run before: esbuild and React are installed there by its lock file.
 */
export async function prepare(folder) {
  const web = resolve(folder ?? join(here, "../target/web"));
  const packages = join(web, "studio-packages");
  install(packages);
  const { build } = await import(pathToFileURL(createRequire(join(web, "package.json")).resolve("esbuild")));
  const options = (name) => ({
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
    outdir: join(web, name),
  });
  return { web, build, options };
}

/** Builds the script and the styles of a page, and copies its other files. */
export async function buildPage({ web, build, options }, { name, source, script, styles }) {
  const out = join(web, name);
  mkdirSync(out, { recursive: true });
  const { outputFiles } = await build({
    ...options(name),
    entryPoints: { [name]: join(source, script), [`${name}-styles`]: join(source, styles) },
    jsx: "automatic",
    jsxImportSource: "preact",
  });
  keepAll(outputFiles);
  for (const file of ["index.html", "icon.svg"]) keep(join(out, file), readFileSync(join(source, file)));
}

export function keepAll(files) {
  for (const { path, contents } of files) keep(path.replace("-styles.css", ".css"), contents);
}

/** Cargo looks at the time of a file: the same bytes are not written again. */
function keep(path, contents) {
  if (!existsSync(path) || !readFileSync(path).equals(contents)) writeFileSync(path, contents);
}

function install(packages) {
  const [stamp, lock] = [join(packages, "installed.lock.json"), readFileSync(join(here, "package-lock.json"), "utf8")];
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === lock) return;
  mkdirSync(packages, { recursive: true });
  for (const name of ["package.json", "package-lock.json"]) copyFileSync(join(here, name), join(packages, name));
  // On Windows npm is a script, which only a shell starts.
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], { cwd: packages, stdio: "inherit", shell: process.platform === "win32" });
  writeFileSync(stamp, lock);
}
