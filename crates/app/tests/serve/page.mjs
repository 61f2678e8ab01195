// The process, a model for it and the page in Chromium, and what a person does with them.
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { startModel } from "./model.mjs";
import { expectAccessible } from "../../../../web/common/tests/accessible.mjs";
import { Program as StartedProgram, environmentOf, launchBrowser } from "../../../../web/common/tests/starters.mjs";
import { WAIT, expect, until } from "../../../../web/common/tests/wait.mjs";

export { WAIT, expect, until };

/** A promise and the function that ends it. */
export function gate() {
  let open;
  const until = new Promise((done) => (open = done));
  return { until, open };
}

/** A program with a home that all programs of a flow share. */
export class Program extends StartedProgram {
  constructor(stage, args) {
    super(stage.binary, args, { cwd: stage.project, env: stage.environment });
  }
}

/** An editor that speaks the Agent Client Protocol. */
export class Editor extends Program {
  constructor(stage) {
    super(stage, ["acp"]);
    this.messages = [];
    this.count = 0;
    createInterface({ input: this.child.stdout }).on("line", (line) => this.messages.push(JSON.parse(line)));
  }

  send(method, params) {
    this.count += 1;
    this.child.stdin.write(`${JSON.stringify({ jsonrpc: "2.0", id: this.count, method, params })}\n`);
    return this.count;
  }

  async call(method, params) {
    return this.answer(this.send(method, params));
  }

  async answer(id) {
    const find = () => this.messages.find((message) => message.id === id && message.method === undefined);
    await until(() => find() !== undefined, `the editor got no answer to ${id}: ${this.told}`);
    expect(find().error === undefined, `the editor was refused: ${JSON.stringify(find().error)}`);
    return find().result;
  }

  /** Everything that the chat said, as one text. */
  text() {
    const updates = this.messages.map((message) => message.params?.update).filter((update) => update?.sessionUpdate === "agent_message_chunk");
    return updates.map((update) => update.content.text).join("");
  }
}

/** Everything that a flow uses; `close` ends it. */
export async function openStage({ binary, web, folder, options = {} }) {
  const browser = await launchBrowser(web);
  const model = await startModel();
  const stage = new Stage({ browser, model, binary, web, folder });
  stage.prepare();
  await stage.start();
  await stage.open(options);
  return stage;
}

export class Stage {
  constructor(parts) {
    Object.assign(this, parts);
    this.axe = readFileSync(join(this.web, "node_modules/axe-core/axe.min.js"), "utf8");
    this.problems = [];
    this.home = join(this.folder, "home");
    this.project = join(this.folder, "shop");
    this.environment = environmentOf(this.home);
  }

  /** A home with a model that has a price, and a project. */
  prepare() {
    const settings = join(this.home, ".config/dragoman");
    mkdirSync(settings, { recursive: true });
    mkdirSync(this.project, { recursive: true });
    const models = { "m1": { cost: { input: 3, output: 15 }, limit: { context: 200_000 } }, "m2": {} };
    const config = { defaultModel: "fake/m1", sandbox: "ask", chat: { title: false }, providers: { fake: { api: "openai-chat", url: this.model.url, key: "sk-secret-of-the-test", models } } };
    writeFileSync(join(settings, "config.json"), JSON.stringify(config));
    writeFileSync(join(this.project, "price.py"), "def total(items):\n    return sum(item.price for item in items)\n");
  }

  async start() {
    this.server = new Program(this, ["serve", "--no-open", "--json"]);
    let told = "";
    this.server.child.stdout.on("data", (part) => (told += part));
    await until(() => told.includes("\n") || this.server.child.exitCode !== null, `serve told no address: ${this.server.told}`);
    expect(told.includes("url"), `serve ended: ${this.server.told}`);
    this.address = JSON.parse(told).url;
  }

  /** The page in a window of its own, by the link that the process printed. */
  async open(options = {}) {
    await this.newWindow(options);
    await this.page.goto(this.address);
    await this.page.locator(".list-pane").waitFor();
  }

  async newWindow(options) {
    this.context = await this.browser.newContext({ viewport: { width: 1280, height: 800 }, reducedMotion: "reduce", locale: "en-US", ...options });
    this.context.setDefaultTimeout(WAIT);
    // A change of the page can be tried without building the program again.
    const assets = process.env.DRAGOMAN_CHATS_ASSETS;
    if (assets !== undefined) await this.context.route(/\/assets\/[^/]+$/, (route) => route.fulfill({ path: join(assets, route.request().url().split("/").pop()) }));
    this.page = await this.context.newPage();
    this.page.on("pageerror", (error) => this.problems.push(`error of the page: ${error.message}`));
  }

  /** Opens a server for other machines in a window of its own. */
  async visit(address) {
    await this.newWindow({ ignoreHTTPSErrors: true });
    await this.page.goto(address);
    await this.page.getByRole("heading", { name: "Log in to Dragoman" }).waitFor();
  }

  async logIn(token) {
    await this.page.getByLabel("Token").fill(token);
    await this.page.getByRole("button", { name: "Log in" }).click();
  }

  async close() {
    await this.browser.close();
    await this.server.stop();
    this.model.stop();
  }

  async newChat() {
    await this.page.getByRole("button", { name: "New chat" }).first().click();
    await this.page.locator("#composer").waitFor();
    await this.page.getByText("What shall be done?").waitFor();
  }

  /** Writes into the box and sends it. */
  async write(text) {
    const box = this.page.locator("#composer");
    await box.fill(text);
    await box.press("Enter");
  }

  async say(text) {
    await this.write(text);
    await this.page.locator(".from-user", { hasText: text }).last().waitFor();
  }

  /** Waits until no turn runs. */
  async idle() {
    await this.page.locator(".composer", { hasNot: this.page.getByRole("button", { name: "Stop" }) }).waitFor();
    await this.page.locator(".working").waitFor({ state: "detached" });
  }

  answerOf(text) {
    return this.page.locator(".from-agent", { hasText: text });
  }

  call(text) {
    return this.page.locator(".call", { hasText: text });
  }

  /** No violation in what is shown now. */
  async accessible(state) {
    await expectAccessible(this.page, this.axe, state);
  }

  async theme(name) {
    await this.page.getByRole("button", { name: "Theme" }).click();
    await this.page.getByRole("menuitemradio", { name }).click();
    const wanted = name.toLowerCase();
    await this.page.locator(`html[data-theme="${wanted}"]`).waitFor();
  }
}
