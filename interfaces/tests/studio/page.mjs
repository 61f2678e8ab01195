// The studio process and its page in Chromium, and what a person does with them.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { specificationOf } from "./api.mjs";
import { expectAccessible } from "../../../web/common/tests/accessible.mjs";
import { Program, environmentOf, launchBrowser } from "../../../web/common/tests/starters.mjs";
import { WAIT, expect, until } from "../../../web/common/tests/wait.mjs";

export { WAIT, expect, until };

/** `dragoman studio` with a home of its own. */
export class Process {
  constructor(binary, home) {
    this.binary = binary;
    this.home = home;
    mkdirSync(home, { recursive: true });
  }

  async start(settings = []) {
    const since = Date.now();
    this.program = new Program(this.binary, ["studio", "--no-open", ...settings], { cwd: this.home, env: environmentOf(this.home) });
    const { child } = this.program;
    let shown = "";
    child.stdout.on("data", (part) => (shown += part));
    await until(() => /http:\/\/127\.0\.0\.1:\d+\/#token=\S+/.test(shown) || child.exitCode !== null, `studio told no address: ${this.told}`);
    this.took = Date.now() - since;
    this.address = /http:\/\/127\.0\.0\.1:\d+\/#token=[^\s"]+/.exec(shown)?.[0];
    expect(this.address !== undefined, `studio ended: ${this.told}`);
    return this.address;
  }

  async stop() {
    await this.program?.stop("SIGTERM", WAIT);
  }

  get told() {
    return this.program?.told ?? "";
  }
}

/** Everything that a flow uses; `close` ends it. */
export async function openStage({ binary, web, folder, shop, settings = [], configuration, options = {} }) {
  const browser = await launchBrowser(web);
  const studio = new Process(binary, join(folder, "home"));
  const stage = new Stage({ browser, studio, shop, web, folder });
  if (configuration !== undefined) {
    mkdirSync(join(studio.home, ".config/dragoman"), { recursive: true });
    writeFileSync(join(studio.home, ".config/dragoman/config.json"), JSON.stringify(configuration));
  }
  await studio.start(settings);
  await stage.open(options);
  return stage;
}

export class Stage {
  constructor(parts) {
    Object.assign(this, parts);
    this.axe = readFileSync(join(this.web, "node_modules/axe-core/axe.min.js"), "utf8");
    this.problems = [];
    /** Times in milliseconds, to be looked at; no test depends on them. */
    this.figures = {};
  }

  /** A window of the browser. */
  async makeContext(options = {}) {
    const context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", locale: "en-US", acceptDownloads: true, ...options });
    context.setDefaultTimeout(WAIT);
    // A change of the page can be tried without building the program again.
    const assets = process.env.DRAGOMAN_STUDIO_ASSETS;
    if (assets !== undefined) await context.route(/\/(assets|frame)\/[^/]+$/, (route) => {
        const name = route.request().url().split("/").pop();
        return route.fulfill({ path: name === "react.js" ? join(assets, "../react-bundle.js") : join(assets, name) });
      });
    // What is being made is shown for a moment only: it is kept for the flows.
    await context.addInitScript(() => {
      globalThis.seenPhases = [];
      const keep = () => {
        const text = document.querySelector(".making")?.textContent;
        if (text !== undefined && globalThis.seenPhases.at(-1) !== text) globalThis.seenPhases.push(text);
      };
      new MutationObserver(keep).observe(document, { subtree: true, childList: true, characterData: true });
    });
    return context;
  }

  /** The page in a window of its own, by the link that the process printed. */
  async open(options = {}) {
    await this.context?.close();
    this.context = await this.makeContext(options);
    this.page = await this.context.newPage();
    // What the frame is refused in an attack is an error of the browser, and wanted.
    this.page.on("pageerror", (error) => this.isAttacked || this.problems.push(`error of the page: ${error.message}`));
    const since = Date.now();
    await this.page.goto(this.studio.address);
    await this.page.locator(".top").waitFor();
    this.painted = Date.now() - since;
    // The first time the page opens a tab by itself.
    await this.page.locator(".tab").first().waitFor();
  }

  async close() {
    await this.browser.close();
    await this.studio.stop();
  }

  /** The interface that is shown, as a place to look for things. */
  get interface() {
    return this.page.frameLocator("iframe.frame:not([hidden]):not(.frame-coming)");
  }

  /** The frame of the interface that is shown, to run code in it. */
  async frame() {
    const element = await this.page.locator("iframe.frame:not([hidden]):not(.frame-coming)").elementHandle();
    return element.contentFrame();
  }

  async drop(name, text) {
    await this.page.locator(".intake").waitFor();
    const data = await this.page.evaluateHandle(
      ([name, text]) => {
        const data = new DataTransfer();
        data.items.add(new File([text], name, { type: "text/yaml" }));
        return data;
      },
      [name, text],
    );
    await this.page.dispatchEvent(".intake", "drop", { dataTransfer: data });
  }

  async paste(text) {
    await this.page.getByRole("button", { name: "Paste" }).click();
    await this.page.getByLabel("Text of the specification").fill(text);
    await this.page.getByRole("button", { name: "Build the interface" }).click();
  }

  /** Waits until the interface of this version is shown. */
  async shown(version) {
    await this.page.locator(".toolbar", { hasText: `Version ${version}` }).waitFor();
    await this.page.locator(`iframe.frame[data-version="${version}"]:not([hidden]):not(.frame-coming)`).waitFor();
    await until(async () => (await this.page.locator("iframe.frame:not([hidden])").count()) === 1, `version ${version} is not alone`);
    await this.interface.locator(".dragoman-brand").waitFor();
  }

  /** Confirms the address of the shop, which is a private one. */
  async confirmAddress() {
    await this.page.getByRole("button", { name: "Confirm", exact: true }).click();
    await this.page.getByRole("dialog", { name: "Send requests to a private address?" }).getByRole("button", { name: "Allow" }).click();
    await this.page.locator(".stage .banner", { hasText: "Authentication required" }).waitFor();
  }

  async signIn(token) {
    await this.page.locator(".banner").getByRole("button", { name: /^(Connect|Sign in again)$/ }).click();
    const panel = this.page.getByRole("dialog", { name: "Connection" });
    await panel.getByText("Bearer token").click();
    await panel.getByLabel("Token", { exact: true }).fill(token);
    await panel.getByRole("button", { name: "Save and test" }).click();
    await this.connected(panel);
    await panel.getByRole("button", { name: "Close", exact: true }).click();
  }

  /** Waits for the state of the connection: “Not connected” holds the word too. */
  async connected(panel) {
    await panel.locator(".status strong", { hasText: /^Connected$/ }).waitFor();
  }

  /** Empties the console. What was on its way may come after that: then it is emptied again. */
  async clearConsole() {
    const isEmpty = async () => (await this.page.locator(".console", { hasText: "Nothing yet" }).count()) > 0;
    await until(async () => {
      await this.page.getByRole("button", { name: "Clear", exact: true }).click();
      for (let tries = 0; tries < 20 && !(await isEmpty()); tries += 1) await new Promise((done) => setTimeout(done, 50));
      return isEmpty();
    }, "the console is never empty");
  }

  async say(text) {
    const box = this.page.locator("#composer");
    await box.fill(text);
    await box.press("Enter");
    await this.page.locator(".from-user", { hasText: text }).last().waitFor();
  }

  async openConsole() {
    if ((await this.page.locator(".console").count()) === 0) await this.page.getByRole("button", { name: "Console", exact: true }).click();
    await this.page.locator(".console").waitFor();
  }

  /** Waits for an entry of the console with this text. */
  async logged(text) {
    await this.openConsole();
    await this.page.locator(".entry", { hasText: text }).first().waitFor().catch(() => {
      throw new Error(`the console does not tell “${text}”`);
    });
  }

  /** A list of the interface. */
  async openList(resource) {
    await this.interface.locator(`[data-ui-resource="${resource}"]`).click();
  }

  rows() {
    return this.interface.locator(".dragoman-rowlink");
  }

  /** No violation in what is shown now. The frame is a document of its own and is looked at by the tests of apiui. */
  async accessible(state) {
    await expectAccessible(this.page, this.axe, state, { iframes: false });
  }

  /** Brings a version back by the history; `next` is its new number. */
  async restore(shown, version, next) {
    await this.page.getByRole("button", { name: `Version ${shown}`, exact: true }).click();
    const history = this.page.getByRole("dialog", { name: "Version history" });
    await history.locator(".version").filter({ has: this.page.locator("strong", { hasText: new RegExp(`^Version ${version}$`) }) }).getByRole("button", { name: "Restore" }).click();
    await this.shown(next);
  }

  /** From nothing to an interface with live data. */
  async prepare(specification = specificationOf(this.shop.origin)) {
    await this.drop("shop.yaml", specification);
    await this.shown(1);
    await this.confirmAddress();
    await this.signIn("first-secret");
  }
}
