// Starts what a flow uses: the program with a home of its own, the browser, and the flow itself with a deadline.
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";

const BROWSER_FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"];

/** Chromium, driven by the packages in `web` (target/web). */
export function launchBrowser(web) {
  const { chromium } = createRequire(join(web, "package.json"))("playwright-core");
  return chromium.launch({ executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium", args: BROWSER_FLAGS });
}

/** The variables of a program with this home: nothing of the person who runs the tests. */
export function environmentOf(home) {
  const { PATH, LD_LIBRARY_PATH } = process.env;
  return { PATH, HOME: home, LANG: "C.UTF-8", ...(LD_LIBRARY_PATH === undefined ? {} : { LD_LIBRARY_PATH }) };
}

/** A program that runs; `told` is what it wrote to stderr. */
export class Program {
  constructor(binary, args, { cwd, env }) {
    this.child = spawn(binary, args, { cwd, env, stdio: ["pipe", "pipe", "pipe"] });
    const { child } = this;
    // Whatever happens here, the process does not stay.
    process.once("exit", () => child.kill("SIGKILL"));
    this.told = "";
    child.stderr.on("data", (part) => (this.told += part));
    this.ended = new Promise((done) => child.once("exit", done));
  }

  async stop(signal = "SIGTERM", wait = 20_000) {
    this.child.kill(signal);
    const late = new Promise((done) => setTimeout(() => done("late"), wait));
    if ((await Promise.race([this.ended, late])) === "late") this.child.kill("SIGKILL");
  }
}

/** The arguments of a driver: FLOW BINARY WEB FOLDER. */
export function driverArguments() {
  const [name, ...paths] = process.argv.slice(2);
  const [binary, web, folder] = paths.map((path) => resolve(path));
  return { name, binary, web, folder };
}

/**
 * Runs one flow on a stage and ends the process: 0 where it passed, 1 where not, 3 where it took longer than `deadline`.
 * `end` closes what belongs to the stage; `told` is what the program said.
 */
export async function runFlow({ name, folder, deadline, stage, flow, end, told }) {
  let failure;
  try {
    await flow(stage);
    if (stage.problems.length > 0) throw new Error(stage.problems.join("; "));
  } catch (error) {
    failure = error;
    await stage.page.screenshot({ path: join(folder, "failed.png") }).catch(() => {});
  }
  await end();
  clearTimeout(deadline);
  if (failure !== undefined) {
    console.error(`${name}: ${failure.stack}\npicture: ${join(folder, "failed.png")}\nthe program told: ${told()}`);
    process.exit(1);
  }
  process.exit(0);
}

/** Ends the process after so many minutes. */
export function startDeadline(name, minutes) {
  return setTimeout(() => {
    console.error(`The flow ${name} took too long.`);
    process.exit(3);
  }, minutes * 60_000).unref();
}
