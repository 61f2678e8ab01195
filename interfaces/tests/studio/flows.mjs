// What a person does with studio, from outside. A flow throws where the page does not do what it should.
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { specificationOf } from "./api.mjs";
import { expect, until } from "./page.mjs";
import { plugins, tools } from "./plugins.mjs";

/** From a dropped file to live data: list, create, a refusal, an error, an expired token, signing in again. */
async function live(stage) {
  const { page, shop } = stage;
  const since = Date.now();
  stage.figures.link = stage.studio.took;
  stage.figures.firstPicture = await page.evaluate(() => performance.getEntriesByName("first-contentful-paint")[0]?.startTime);
  const outside = await page.evaluate(() => performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => !name.startsWith(location.origin)));
  expect(outside.length === 0, `the page loaded ${outside.join(", ")}`);
  await stage.drop("shop.yaml", specificationOf(shop.origin));
  await stage.shown(1);
  stage.figures.interface = Date.now() - since;
  const phases = (await page.evaluate(() => globalThis.seenPhases)).join(" ");
  expect(/Building the interface/.test(phases) && /of code so far/.test(phases), `the progress was not shown: ${phases.slice(0, 300)}`);
  // Nothing is called before the address was confirmed.
  await stage.openList("Books");
  await stage.interface.getByTestId("failure").waitFor();
  expect(shop.calls.length === 0, "the API was called before its address was confirmed");
  await stage.confirmAddress();
  await stage.signIn("first-secret");
  await stage.interface.getByRole("button", { name: /Try again|Refresh/ }).first().click();
  await stage.rows().first().waitFor();
  expect((await stage.rows().count()) >= 10, "the books are not listed");
  await createBooks(stage);
  await failures(stage);
  await expiry(stage);
  const origins = shop.calls.map((call) => call.headers.origin).filter((origin) => origin !== undefined);
  expect(origins.length === 0, `the API was sent an Origin: ${origins[0]}`);
  expect(!(await page.content()).includes("first-secret"), "a secret is in the page");
}

async function createBooks({ interface: shown, shop }) {
  await shown.getByRole("button", { name: "New book" }).click();
  const form = shown.locator("form.dragoman-form");
  await form.getByLabel("Title").fill("No");
  await form.locator('button[type="submit"]').click();
  await shown.getByText("Write at least three letters.").first().waitFor();
  await form.getByLabel("Title").fill("A new book");
  await form.locator('button[type="submit"]').click();
  await until(() => shop.books.some((book) => book.title === "A new book"), "the book was not created");
  await shown.getByText("A new book").first().waitFor();
}

async function failures(stage) {
  const { interface: shown, shop } = stage;
  shop.fail = 503;
  await stage.openList("Authors");
  await shown.getByTestId("failure").waitFor();
  expect(/closed for a moment/.test(await shown.getByTestId("failure").textContent()), "the message of the API is not shown");
  shop.fail = 0;
  await shown.getByRole("button", { name: "Try again" }).click();
  await shown.getByText("Ada Quill").first().waitFor();
}

/** The token expires while a form is half filled; after signing in again it still is. */
async function expiry(stage) {
  const { page, interface: shown, shop } = stage;
  await stage.openList("Books");
  await shown.getByRole("button", { name: "New book" }).click();
  await shown.locator("form.dragoman-form").getByLabel("Title").fill("Half written");
  shop.tokens = new Set(["third-secret"]);
  await shown.locator('form.dragoman-form button[type="submit"]').click();
  await page.locator(".banner", { hasText: "not accepted any more" }).waitFor();
  await stage.accessible("an expired sign-in");
  await stage.signIn("third-secret");
  expect((await shown.locator("form.dragoman-form").getByLabel("Title").inputValue()) === "Half written", "the form lost its text");
  await shown.locator('form.dragoman-form button[type="submit"]').click();
  await until(() => shop.books.some((book) => book.title === "Half written"), "the book was not created after signing in again");
}

/** By address, by paste, by chat; problems with their place; references by hand; private addresses asked about. */
async function specifications(stage) {
  const { page, shop } = stage;
  await stage.accessible("an empty tab");
  await stage.paste("openapi: 3.0.3\ninfo: {title: Nothing, version: '1'}\npaths: {}\n");
  await page.locator(".intake-result .callout").waitFor();
  await stage.accessible("a refused specification");
  const text = specificationOf(shop.origin).replace("{$ref: '#/components/schemas/Author'}", `{$ref: '${shop.origin}/missing.yaml#/Author'}`);
  await page.getByLabel("Text of the specification").fill(text);
  await page.getByRole("button", { name: "Build the interface" }).click();
  await stage.shown(1);
  await page.locator(".banner", { hasText: "missing.yaml" }).getByRole("button", { name: "Supply them" }).click();
  const supplied = page.getByLabel(`${shop.origin}/missing.yaml`).first();
  await supplied.fill("Author: {type: object, properties: {id: {type: integer}, name: {type: string}}}");
  await stage.accessible("missing references");
  await page.getByRole("button", { name: "Build again with these" }).click();
  await stage.shown(2);
  await page.locator(".banner", { hasText: "missing.yaml" }).waitFor({ state: "detached" });
  shop.documents.set("/shop.yaml", specificationOf(shop.origin));
  await page.getByRole("button", { name: "New tab" }).click();
  await page.getByRole("button", { name: "Address", exact: true }).click();
  await page.getByLabel("Address of the specification").fill(`${shop.origin}/shop.yaml`);
  await page.getByRole("button", { name: "Build the interface" }).click();
  await stage.shown(1);
  await page.getByRole("button", { name: "New tab" }).click();
  // The box of the tab before is replaced: what is typed into it would stay there.
  await page.locator(".intake").waitFor();
  await page.locator("#composer").fill(specificationOf(shop.origin));
  await page.locator("#composer").press("Enter");
  await stage.shown(1);
}

/** Changes wait in order, an ambiguous one is asked about, a note says what was changed, an impossible one changes nothing. */
async function changes(stage) {
  const { page } = stage;
  await stage.prepare();
  const since = Date.now();
  await stage.say("Show books as cards");
  await stage.say("Add a search bar");
  await stage.say("Change the title to Reading room");
  await page.locator(".version-note", { hasText: "Version 2" }).waitFor();
  stage.figures.change = Date.now() - since;
  const question = page.locator(".message", { hasText: "search bar" }).getByRole("group", { name: "Choose an answer" });
  await question.waitFor();
  await stage.shown(3);
  await stage.accessible("a question");
  await stage.interface.getByText("Reading room").first().waitFor();
  await question.getByRole("button", { name: /Books/ }).first().click();
  await page.locator(".version-note", { hasText: "Version 4" }).waitFor();
  await stage.shown(4);
  await stage.openList("Books");
  await stage.interface.getByTestId("search-bar").waitFor();
  await stage.say("Draw a pie chart of everything that was sold");
  await page.locator(".message-problem, .is-error").first().waitFor();
  await stage.accessible("a change that could not be made");
  await stage.shown(4);
  await stage.say("What formats do you support?");
  await page.locator(".from-assistant", { hasText: "GraphQL" }).last().waitFor();
}

/** The view and the state of an interface stay when another version is shown. */
async function versions(stage) {
  const { page, studio } = stage;
  await stage.prepare();
  await stage.openList("Books");
  await stage.rows().first().waitFor();
  await stage.say("Show books as cards");
  await stage.shown(2);
  await stage.rows().first().waitFor();
  await page.getByRole("button", { name: "Version 2" }).click();
  let history = page.getByRole("dialog", { name: "Version history" });
  await history.locator(".version").nth(1).waitFor();
  await stage.accessible("the history");
  await history.getByRole("button", { name: "Changes" }).first().click();
  const compared = page.getByRole("dialog", { name: "Compare versions" });
  await compared.locator(".is-added").first().waitFor();
  await stage.accessible("a difference");
  await page.keyboard.press("Escape");
  await compared.waitFor({ state: "detached" });
  const since = Date.now();
  await history.locator(".version", { hasText: "Version 1" }).getByRole("button", { name: "Restore" }).click();
  await stage.shown(3);
  stage.figures.wayBack = Date.now() - since;
  // The tab that is shown last is shown again after the restart.
  const kept = page.waitForResponse((response) => response.url().endsWith("/api/preferences"));
  await page.getByRole("button", { name: "New tab" }).click();
  await page.locator(".intake").waitFor();
  await kept;
  await studio.stop();
  await page.locator(".banner", { hasText: "does not answer" }).waitFor();
  await stage.accessible("a process that is gone");
  await studio.start();
  await stage.open();
  await stage.page.locator('.tab[aria-selected="true"]', { hasText: "New tab" }).waitFor();
  await stage.page.locator(".tab", { hasText: "Corner shop" }).click();
  await stage.shown(3);
  await stage.page.getByRole("button", { name: "Version 3" }).click();
  history = stage.page.getByRole("dialog", { name: "Version history" });
  await history.locator(".version").nth(2).waitFor();
  expect((await history.locator(".version").count()) === 3, "the versions are not all there after a restart");
  await history.locator(".version", { hasText: "Version 2" }).getByRole("button", { name: "Restore" }).click();
  await stage.shown(4);
  expect((await stage.page.locator(".message").count()) > 2, "the chat is gone after a restart");
}

/** Ten tabs with an interface each: switching is quick; renaming, moving, closing with a question, reopening. */
async function tabs(stage) {
  const { page, shop } = stage;
  await stage.prepare();
  for (let count = 2; count <= 10; count += 1) {
    await page.getByRole("button", { name: "New tab" }).click();
    await until(async () => (await page.locator(".tab").count()) === count, "the tab was not opened");
    await stage.drop("shop.yaml", specificationOf(shop.origin));
    await stage.shown(1);
    if (count === 2) await sharesCredentials(stage);
  }
  const times = [];
  for (let index = 0; index < 10; index += 1) {
    const took = page.evaluate(async (at) => {
      const since = performance.now();
      document.querySelectorAll(".tab")[at].click();
      await new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
      return performance.now() - since;
    }, index);
    times.push(await took);
    await stage.shown(1);
  }
  stage.figures.switching = times.sort((a, b) => a - b)[5];
  await page.locator(".tab").nth(0).focus();
  await page.keyboard.press("F2");
  await page.getByRole("dialog", { name: "Rename tab" }).getByLabel("Title").fill("The first");
  await page.keyboard.press("Enter");
  await page.locator(".tab", { hasText: "The first" }).waitFor();
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await page.locator(".tab").nth(0).focus();
  await page.keyboard.press("Control+Shift+ArrowRight");
  // A tab that moves gets the focus back in the next picture: a key before that would go nowhere.
  await until(() => page.locator(".tab").nth(1).evaluate((tab) => /The first/.test(tab.textContent) && tab === document.activeElement), "the tab was not moved");
  await page.keyboard.press("Delete");
  const question = page.getByRole("dialog", { name: /^Close/ });
  await question.waitFor();
  await stage.accessible("the question before closing");
  await question.getByRole("button", { name: "Close tab" }).click();
  await until(async () => (await page.locator(".tab").count()) === 9, "the tab was not closed");
  await page.getByRole("button", { name: "Tab actions" }).click();
  await page.getByRole("menuitem", { name: "Reopen The first" }).click();
  await page.locator(".tab", { hasText: "The first" }).waitFor();
  await stage.shown(1);
}

/** The credentials of the first tab are those of every tab with the same scheme, host and port. */
async function sharesCredentials(stage) {
  const { page } = stage;
  await page.getByRole("button", { name: "Confirm", exact: true }).click();
  await page.getByRole("dialog", { name: "Send requests to a private address?" }).getByRole("button", { name: "Allow" }).click();
  await page.locator(".banner").waitFor({ state: "detached" });
  await stage.openList("Books");
  await stage.rows().first().waitFor();
}

/** The child is killed while it works: the state is seen, what was asked for is sent again, the answer comes. */
async function killed(stage) {
  const { page } = stage;
  await stage.prepare();
  const title = await page.locator(".cli").getAttribute("title");
  const pid = Number(/process (\d+)/.exec(title)?.[1]);
  expect(pid > 0, "the page does not tell the child's process");
  process.kill(pid, "SIGSTOP");
  await stage.say("Show books as cards");
  await page.locator(".from-user", { hasText: "cards" }).getByText("In progress").waitFor();
  process.kill(pid, "SIGKILL");
  await page.locator(".banner", { hasText: "being restarted" }).waitFor();
  await stage.accessible("a restarting child");
  await stage.shown(2);
  await until(async () => (await page.locator(".cli-label").textContent()) === "Running", "the child does not run again");
}

/** Requests with masked secrets, filter, search, clear; what the child writes. */
async function consoles(stage) {
  const { page, shop } = stage;
  await stage.prepare();
  await stage.openConsole();
  await stage.openList("Books");
  await stage.rows().first().waitFor();
  await stage.logged("/v1/books");
  // What the child writes to stderr; studio was started with a log level, which the child has too.
  await page.getByLabel("Kind of entries").selectOption("cli");
  await stage.logged("a host connected");
  await page.getByLabel("Kind of entries").selectOption("");
  await page.locator("summary.entry-line", { hasText: "/v1/books" }).first().click();
  await page.locator(".entry-parts pre").first().waitFor();
  const text = await page.locator(".console").textContent();
  expect(/authorization/i.test(text), "the headers of a request are not shown");
  expect(!text.includes("first-secret"), "the console shows a secret");
  await stage.accessible("the console");
  shop.fail = 500;
  await stage.openList("Authors");
  await stage.interface.getByTestId("failure").waitFor();
  shop.fail = 0;
  await page.getByLabel("Status").selectOption("5");
  await until(async () => (await page.locator(".entry").count()) === 1, "the filter shows something else");
  await page.getByLabel("Status").selectOption("");
  await page.getByLabel("Search the console").fill("authors");
  await until(async () => (await page.locator(".entry").allTextContents()).every((one) => /authors/i.test(one)), "the search shows something else");
  await page.getByLabel("Search the console").fill("");
  await stage.clearConsole();
}

/** OAuth 2 with PKCE through a window of the API, from the panel to the interface. */
async function oauth(stage) {
  const { page, shop } = stage;
  await stage.drop("shop.yaml", specificationOf(shop.origin));
  await stage.shown(1);
  await stage.confirmAddress();
  await page.getByRole("button", { name: "Connect", exact: true }).click();
  const panel = page.getByRole("dialog", { name: "Connection" });
  await panel.getByText("OAuth 2 sign-in").click();
  await panel.getByLabel("Client id").fill("studio-test");
  await stage.accessible("guided sign-in");
  await panel.getByRole("button", { name: "Sign in", exact: true }).click();
  await until(() => shop.tokenRequest !== undefined, "no token was asked for");
  // A page behind the window of the sign-in is not drawn.
  await page.bringToFront();
  await stage.connected(panel);
  expect(shop.authorized.code_challenge_method === "S256", "the sign-in has no PKCE challenge");
  expect((shop.tokenRequest.code_verifier ?? "").length >= 43, "the token request has no verifier");
  await panel.getByRole("button", { name: "Close", exact: true }).click();
  await stage.openList("Books");
  await stage.rows().first().waitFor();
}

/** A Vite project, one HTML file, one module; and what the interface itself saves, by the page, after a click. */
async function exports(stage) {
  const { page, folder } = stage;
  await stage.prepare();
  for (const [item, ending, start] of [["Vite project", ".zip", "PK"], ["One HTML file", ".html", "<!doctype html>"], ["JSX module", ".jsx", "// Generated"]]) {
    await page.getByRole("button", { name: "Export" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: item }).click()]);
    expect(download.suggestedFilename().endsWith(ending), `${item} is saved as ${download.suggestedFilename()}`);
    const path = join(folder, download.suggestedFilename());
    await download.saveAs(path);
    expect(readFileSync(path, "latin1").startsWith(start), `${item} does not begin with ${start}`);
  }
  await stage.openList("Books");
  await stage.rows().first().waitFor();
  await stage.interface.getByRole("checkbox").nth(1).check();
  const saving = page.waitForEvent("download");
  await stage.interface.getByRole("button", { name: "Save as CSV" }).click();
  const saved = await saving;
  const path = join(folder, "rows.csv");
  await saved.saveAs(path);
  expect(saved.suggestedFilename().endsWith(".csv") && /Book number/.test(readFileSync(path, "utf8")), "the rows were not saved");
}

/** Everything by keyboard: the line between the sides, tabs, dialogs; and the page at the width of a phone, light and dark. */
async function keyboard(stage) {
  const { page } = stage;
  await stage.prepare();
  const line = page.getByRole("separator", { name: "Width of the chat" });
  const hasWidth = (width, sentence) => until(async () => (await line.getAttribute("aria-valuenow")) === width, sentence);
  await line.focus();
  await hasWidth("30", "the chat does not begin with 30 %");
  await page.keyboard.press("End");
  await hasWidth("85", "End does not give the chat 85 %");
  await page.keyboard.press("Home");
  await hasWidth("15", "Home does not give the chat 15 %");
  await page.keyboard.press("Enter");
  await hasWidth("30", "Enter does not give the chat 30 %");
  const box = await line.boundingBox();
  await page.mouse.move(box.x, box.y + 200);
  await page.mouse.down();
  // A hand goes on until the line is where it is wanted.
  let height = box.y + 200;
  await until(async () => {
    height += 1;
    await page.mouse.move(640, height, { steps: 4 });
    return (await line.getAttribute("aria-valuenow")) === "50";
  }, "the line does not follow the pointer");
  await page.mouse.up();
  await hasWidth("50", "the line does not stay where it was put");
  await page.getByRole("button", { name: "Version 1" }).focus();
  await page.keyboard.press("Enter");
  await page.getByRole("dialog", { name: "Version history" }).waitFor();
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  await until(() => page.getByRole("button", { name: "Version 1" }).evaluate((one) => one === document.activeElement), "the focus does not come back");
  for (const theme of ["Dark", "Light"]) await looks(stage, theme);
  await withoutLink(stage);
}

/** Whoever has the address but not the link sees nothing, and learns what to do. */
async function withoutLink(stage) {
  const { origin } = new URL(stage.page.url());
  const context = await stage.makeContext();
  stage.page = await context.newPage();
  await stage.page.goto(origin);
  await stage.page.getByText("This page needs its link").waitFor();
  await stage.accessible("a page without its link");
  // A link works once.
  await stage.page.goto("about:blank");
  await stage.page.goto(stage.studio.address);
  await stage.page.getByText("This page needs its link").waitFor();
  await context.close();
}

async function looks(stage, theme) {
  const { page, folder } = stage;
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("button", { name: "Theme" }).click();
  await page.getByRole("menuitemradio", { name: theme }).waitFor();
  await stage.accessible(`a menu, ${theme}`);
  await page.getByRole("menuitemradio", { name: theme }).click();
  await stage.interface.locator(`.dragoman-${theme.toLowerCase()}`).waitFor();
  await stage.accessible(`an interface, ${theme}`);
  for (const panel of ["Connected", "Plugins"]) {
    await page.getByRole("button", { name: panel, exact: true }).click();
    await page.getByRole("dialog").waitFor();
    await stage.accessible(`${panel}, ${theme}`);
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  }
  await page.setViewportSize({ width: 375, height: 740 });
  for (const view of ["Chat", "Interface"]) {
    await page.getByRole("navigation", { name: "View" }).getByRole("button", { name: view }).click();
    await stage.accessible(`a phone, ${view}, ${theme}`);
    await until(() => page.evaluate(() => document.documentElement.scrollWidth <= 375), "the page is wider than a phone");
    writeFileSync(join(folder, `phone-${view}-${theme}.png`), await page.screenshot());
  }
}

/** An API key in the header and in the query, name and password: each is tried, kept out of the page, and used. */
async function signIns(stage) {
  const { page, shop } = stage;
  const schemes = `    key: {type: apiKey, in: header, name: X-Api-Key}\n    account: {type: http, scheme: basic}\n    token: {type: http`;
  await stage.drop("shop.yaml", specificationOf(shop.origin).replace("    token: {type: http", schemes));
  await stage.shown(1);
  await stage.confirmAddress();
  await page.locator(".banner").getByRole("button", { name: "Connect", exact: true }).click();
  const panel = page.getByRole("dialog", { name: "Connection" });
  const status = (text) => panel.locator(".status", { hasText: text }).waitFor();
  const save = panel.getByRole("button", { name: "Save and test" });
  shop.tokens = new Set(["key of the shop"]);
  await panel.locator(".choice", { hasText: "API key" }).click();
  await panel.getByLabel("API key", { exact: true }).and(panel.locator("input.input")).fill("a wrong key");
  await save.click();
  await status("refuses the credentials");
  await stage.accessible("a refused key");
  await panel.getByLabel("API key", { exact: true }).and(panel.locator("input.input")).fill("key of the shop");
  await save.click();
  await stage.connected(panel);
  expect(shop.calls.at(-1).headers["x-api-key"] === "key of the shop", "the key is not in its header");
  await panel.getByLabel("Sent in").selectOption("query");
  await panel.getByLabel("Name", { exact: true }).fill("api_key");
  await panel.getByLabel("API key", { exact: true }).and(panel.locator("input.input")).fill("key of the shop");
  const before = shop.calls.length;
  await save.click();
  await until(() => shop.calls.slice(before).some(({ path, query, headers }) => path === "/v1/books" && query.includes("api_key=key") && headers["x-api-key"] === undefined), "the key is not in the query");
  await stage.connected(panel);
  shop.tokens = new Set(["ada:pass word"]);
  await panel.locator(".choice", { hasText: "Name and password" }).click();
  await panel.getByLabel("User name").fill("ada");
  await panel.getByRole("textbox", { name: "Password" }).fill("pass word");
  await save.click();
  await until(() => (shop.calls.at(-1).headers.authorization ?? "").startsWith("Basic "), "name and password are not sent");
  await stage.connected(panel);
  await panel.getByRole("button", { name: "Close", exact: true }).click();
  await stage.openList("Books");
  await stage.rows().first().waitFor();
  const text = await page.content();
  expect(!text.includes("pass word") && !text.includes("key of the shop"), "a secret is in the page");
}

/** Server-sent events of the API, while they come, through page and process; Stop ends them at the API too. */
async function streams(stage) {
  const { shop, interface: shown } = stage;
  const operation = `  /ticks:
    get:
      tags: [Ticks]
      operationId: watchTicks
      summary: Watch ticks
      responses:
        '200': {description: Ticks, content: {text/event-stream: {schema: {type: string}}}}
  /authors:`;
  await stage.prepare(specificationOf(shop.origin).replace("  /authors:", operation));
  await stage.openList("Ticks");
  await shown.locator('.dragoman-opener[data-operation="GET /ticks"]').click();
  await shown.locator('form.dragoman-form button[type="submit"]').click();
  const events = shown.locator('[data-testid="stream"] li');
  await events.first().waitFor();
  expect((await events.count()) === 1, "an event is shown before it was sent");
  shop.tick("second tick");
  await events.filter({ hasText: "second tick" }).waitFor();
  expect(shop.streams === 1, "the stream has ended already");
  await shown.getByRole("button", { name: "Stop" }).click();
  await shown.getByText("Ended").waitFor();
  await until(() => shop.streams === 0, "the API still sends");
  await stage.logged("/v1/ticks");
}

export const flows = { live, specifications, changes, versions, tabs, killed, consoles, oauth, signIns, streams, exports, keyboard, plugins, tools };
