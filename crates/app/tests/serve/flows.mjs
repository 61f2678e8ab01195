// What a person does with the page, from outside. A flow throws where the page does not do what it should.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { Editor, Program, expect, gate, until } from "./page.mjs";

const EDIT = {
  name: "edit_file",
  input: { path: "price.py", original_content: "return sum(item.price for item in items)", new_content: "return sum(item.price for item in items or [])" },
};
const TASKS = {
  name: "task",
  input: { tasks: [{ text: "Find the fault", status: "done" }, { text: "Fix the sum", status: "in_progress" }, { text: "Run the tests", status: "pending" }] },
};

/** A new chat with everything that a turn can have. */
async function chat(stage) {
  const { page, model } = stage;
  await page.getByText("No chat is open").waitFor();
  await stage.newChat();
  const price = join(stage.project, "price.py");
  model.answers.push(
    { say: "Let me look.", calls: [TASKS] },
    { reason: "An empty cart is None here.", say: "An empty cart arrives as `None`.", calls: [EDIT] },
    { calls: [{ name: "ask_user", input: { question: "Shall I add a test?", options: ["Yes", "No"] } }] },
    { say: "Done. **The sum** takes an empty cart now.\n\n- one line changed\n- no caller changed" },
  );
  await stage.say("The total fails for an empty cart");
  // The difference is shown before it is made.
  const call = stage.call("price.py");
  await call.getByRole("button", { name: "Allow", exact: true }).waitFor();
  await call.locator(".diff-line.is-added", { hasText: "items or []" }).waitFor();
  expect(!readFileSync(price, "utf8").includes("or []"), "the file was changed before it was allowed");
  await page.locator(".facts-pane").getByText("Fix the sum").waitFor();
  await page.locator(".facts-pane").getByText("1 of 3 done").waitFor();
  await page.locator(".chat-row[aria-current]", { hasText: "Needs approval" }).waitFor();
  await stage.accessible("an approval");
  await call.getByRole("button", { name: "Allow", exact: true }).click();
  await until(() => readFileSync(price, "utf8").includes("or []"), "the change was allowed and not made");
  await page.getByRole("group", { name: "Choose an answer" }).getByRole("button", { name: "Yes" }).click();
  await stage.answerOf("The sum takes an empty cart now.").waitFor();
  await stage.idle();
  expect(model.lastRequest().includes("Yes"), "the answer did not reach the model");
  expect((await page.locator(".from-agent strong", { hasText: "The sum" }).count()) === 1, "Markdown is not shown");
  await page.locator(".facts-pane .cost", { hasText: "$" }).waitFor();
  // What was stored is what was live: the page is opened again.
  const live = await page.locator(".entries").innerText();
  await page.reload();
  await stage.answerOf("The sum takes an empty cart now.").waitFor();
  const stored = await page.locator(".entries").innerText();
  expect(live === stored, `live and stored differ:\n${live}\n---\n${stored}`);
  await page.locator("#search").fill("empty cart");
  await page.locator(".chat-row .excerpt").first().waitFor();
  await page.locator("#search").fill("a word that nobody wrote");
  await page.getByText("Nothing was found").waitFor();
  await stage.accessible("an empty search");
}

/** Stop, steer, take back, fork, roll back. */
async function control(stage) {
  const { page, model } = stage;
  await stage.newChat();
  const first = gate();
  model.answers.push({ say: "A long answer begins", until: first.until, calls: [TASKS] }, { say: "I heard you." });
  await stage.say("Begin");
  await stage.answerOf("A long answer begins").waitFor();
  await stage.write("Use tabs");
  await page.locator(".steering", { hasText: "Use tabs" }).waitFor();
  await page.getByRole("button", { name: "Take back" }).click();
  await page.locator(".steering").waitFor({ state: "detached" });
  await stage.write("Use spaces");
  await page.locator(".steering", { hasText: "Use spaces" }).waitFor();
  first.open();
  await stage.answerOf("I heard you.").waitFor();
  await stage.idle();
  expect(model.lastRequest().includes("Use spaces") && !model.lastRequest().includes("Use tabs"), "the model did not read the steering text");
  const second = gate();
  model.answers.push({ say: "This will not end", until: second.until });
  await stage.say("Go on");
  await stage.answerOf("This will not end").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await page.locator(".remark", { hasText: "Stopped." }).waitFor();
  await stage.idle();
  second.open();
  // A file is changed, and rolled back with the message that asked for it.
  const price = join(stage.project, "price.py");
  const before = readFileSync(price, "utf8");
  model.answers.push({ calls: [EDIT] }, { say: "It is changed." });
  await stage.say("Change the file");
  await stage.call("price.py").getByRole("button", { name: "Allow", exact: true }).click();
  await stage.answerOf("It is changed.").waitFor();
  await stage.idle();
  await page.locator(".from-user", { hasText: "Change the file" }).getByRole("button", { name: /^More of/ }).click();
  await page.getByRole("menuitem", { name: "Roll back to before this…" }).click();
  const dialog = page.getByRole("dialog", { name: "Roll back" });
  await dialog.getByLabel("Both").check();
  await stage.accessible("rolling back");
  await dialog.getByRole("button", { name: "Roll back" }).click();
  await page.locator(".from-user", { hasText: "Change the file" }).waitFor({ state: "detached" });
  await until(() => readFileSync(price, "utf8") === before, "the file was not put back");
  // A fork ends where it was made, and the other chat stays.
  const address = page.url();
  await page.locator(".from-agent", { hasText: "I heard you." }).getByRole("button", { name: /^More of/ }).click();
  await page.getByRole("menuitem", { name: "Fork up to here" }).click();
  await until(() => page.url() !== address, "no new chat was opened");
  await stage.answerOf("I heard you.").waitFor();
  expect((await page.locator(".from-user", { hasText: "Go on" }).count()) === 0, "the fork has what came later");
  model.answers.push({ say: "In the fork." });
  await stage.say("Only here");
  await stage.answerOf("In the fork.").waitFor();
  await stage.idle();
  await page.goto(address);
  await stage.answerOf("This will not end").waitFor();
  expect((await page.getByText("Only here").count()) === 0, "the first chat has what the fork said");
  // A denied call tells the model why.
  model.answers.push({ calls: [{ name: "write_file", input: { path: "notes.txt", content: "A note\n" } }] }, { say: "As you wish." });
  await stage.say("Write a note");
  const call = stage.call("notes.txt");
  await call.getByRole("button", { name: "Say why not" }).click();
  await call.getByLabel("Reason, for the model").fill("the file is generated");
  await call.getByRole("button", { name: "Deny" }).click();
  await stage.answerOf("As you wish.").waitFor();
  expect(model.lastRequest().includes("the file is generated"), "the reason did not reach the model");
  expect(!existsSync(join(stage.project, "notes.txt")), "a denied change was made");
}

/** A chat of an editor in the page; then the editor dies. */
async function attached(stage) {
  const { page, model } = stage;
  const editor = new Editor(stage);
  await editor.call("initialize", { protocolVersion: 1, clientCapabilities: {} });
  const { sessionId } = await editor.call("session/new", { cwd: stage.project, mcpServers: [] });
  const ask = (text) => editor.send("session/prompt", { sessionId, prompt: [{ type: "text", text }] });
  model.answers.push({ say: "From the editor." });
  const first = ask("Begin in the editor");
  await editor.answer(first);
  await page.locator(".chat-row", { hasText: "Begin in the editor" }).click();
  await stage.answerOf("From the editor.").waitFor();
  await page.locator(".holder", { hasText: "This chat runs in Dragoman" }).waitFor();
  await stage.accessible("an attached chat");
  // The page sees a turn of the editor live, and approves its call.
  const held = gate();
  model.answers.push({ say: "Half an answer", until: held.until, calls: [EDIT] }, { say: "The page allowed it." });
  const second = ask("Change the file");
  await stage.answerOf("Half an answer").waitFor();
  held.open();
  const call = stage.call("price.py");
  await call.getByRole("button", { name: "Allow", exact: true }).click();
  await editor.answer(second);
  expect(readFileSync(join(stage.project, "price.py"), "utf8").includes("or []"), "the approval of the page did not count");
  await stage.answerOf("The page allowed it.").waitFor();
  await stage.idle();
  // The page prompts, and the editor sees the answer.
  model.answers.push({ say: "For both of us." });
  await stage.say("Prompted in the page");
  await stage.answerOf("For both of us.").waitFor();
  await until(() => editor.text().includes("For both of us."), `the editor did not see the answer: ${editor.text()}`);
  await stage.idle();
  // The editor dies in the middle of a turn: the page takes over and says so.
  const never = gate();
  model.answers.push({ say: "Nobody will hear the end", until: never.until });
  ask("A last one");
  await stage.answerOf("Nobody will hear the end").waitFor();
  await editor.stop("SIGKILL");
  await page.locator(".remark", { hasText: "interrupted" }).waitFor();
  await page.locator(".holder").waitFor({ state: "detached" });
  await stage.idle();
  never.open();
  model.answers.push({ say: "Now from here." });
  await stage.say("Go on in the page");
  await stage.answerOf("Now from here.").waitFor();
  await stage.idle();
  // The page says when the process has gone, and keeps what it shows.
  await stage.server.stop();
  await page.getByRole("alert").getByText("Dragoman does not answer.").waitFor();
  await stage.accessible("a process that has ended");
  expect((await stage.answerOf("Now from here.").count()) === 1, "the chat is not shown any more");
}

/** Keyboard only, both themes, both sizes; hostile text. */
async function keyboard(stage) {
  const { page, model } = stage;
  await stage.accessible("no chat");
  await page.locator("body").press("Tab");
  await until(() => page.evaluate(() => document.activeElement?.textContent === "Skip to the chat"), "the first stop is not the way to the chat");
  await page.getByRole("button", { name: "New chat" }).first().focus();
  await page.keyboard.press("Enter");
  await until(() => page.evaluate(() => document.activeElement?.id === "composer"), "the box has no focus");
  const hostile = "<img src=x onerror=alert(1)> [link](javascript:alert(1)) <script>alert(2)</script>\n\n```html\n<b>code</b>\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |";
  model.answers.push({ reason: "Thinking about it.", say: hostile, calls: [TASKS, { name: "shell_command", input: { command: "echo \u202egnp.exe" } }] }, { say: "The end." });
  await page.keyboard.type("Show me everything");
  await page.keyboard.press("Enter");
  const allow = page.locator(".ask").getByRole("button", { name: "Allow", exact: true });
  await allow.waitFor();
  expect((await page.locator(".from-agent img, .from-agent script, .from-agent a").count()) === 0, "text of the model became HTML");
  await until(async () => (await page.locator(".call .ask, .call-title, .arguments").allInnerTexts()).join(" ").includes("\\u{202e}"), "a hidden character is not shown before the approval");
  await stage.accessible("a question in light");
  // Everything that can be done here is reached by Tab.
  const reached = new Set();
  for (let step = 0; step < 60; step += 1) {
    await page.keyboard.press("Tab");
    reached.add(await page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? ""));
  }
  for (const name of ["Allow", "Deny", "Stop", "More of this chat", "Theme"]) expect([...reached].includes(name), `${name} is not reached by Tab: ${[...reached].join(" | ")}`);
  await allow.focus();
  await page.keyboard.press("Enter");
  await stage.answerOf("The end.").waitFor();
  await stage.idle();
  await stage.theme("Dark");
  await stage.accessible("a chat in dark");
  await page.reload();
  await page.locator('html[data-theme="dark"]').waitFor();
  await stage.answerOf("The end.").waitFor();
  await page.setViewportSize({ width: 375, height: 740 });
  await page.getByRole("button", { name: "Back to the list" }).waitFor();
  await stage.accessible("a chat on a phone, in dark");
  await until(() => page.evaluate(() => document.documentElement.scrollWidth <= 375), "the page is wider than a phone");
  await page.getByRole("button", { name: /cost unknown|\$/ }).click();
  const sheet = page.getByRole("dialog", { name: "Tasks and cost" });
  await sheet.getByText("Fix the sum").waitFor();
  await stage.accessible("tasks on a phone");
  await page.keyboard.press("Escape");
  await sheet.waitFor({ state: "detached" });
  await page.getByRole("button", { name: "Back to the list" }).click();
  await page.locator(".chat-row").first().waitFor();
  await stage.theme("Light");
  await stage.accessible("the list on a phone");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.locator("#main").focus();
  await page.keyboard.press("/");
  await until(() => page.evaluate(() => document.activeElement?.id === "search"), "the key / does not lead to the search");
  // Without its link the page shows nothing.
  const stranger = await stage.browser.newContext();
  const other = await stranger.newPage();
  await other.goto(new URL(stage.address).origin);
  await other.getByText("This page needs its link").waitFor();
  const answer = await other.evaluate(async () => (await fetch("/api/chats")).status);
  expect(answer === 401, `a page without a session got ${answer}`);
  await stranger.close();
}

/** A server for other machines: the form for the token, and what a role may do. */
async function roles(stage) {
  const account = (name, role) => {
    const made = execFileSync(stage.binary, ["serve", "tokens", "add", name, "--role", role, "--json"], { env: stage.environment, cwd: stage.project });
    return JSON.parse(made.toString()).token;
  };
  const [anna, viv] = [account("anna", "drive"), account("viv", "view")];
  const server = new Program(stage, ["serve", "--listen", "127.0.0.1:0", "--workspace", stage.project, "--json"]);
  let told = "";
  server.child.stdout.on("data", (part) => (told += part));
  await until(() => told.includes("\n") || server.child.exitCode !== null, `the server told no address: ${server.told}`);
  const address = JSON.parse(told).url;
  await stage.visit(address);
  await stage.accessible("the form for a token");
  await stage.logIn("dragoman_wrong");
  await stage.page.getByText("No valid token").waitFor();
  await stage.accessible("a token that is refused");
  await stage.logIn(anna);
  await stage.page.getByText("anna (drive)").waitFor();
  await stage.page.getByText("All users of this server share its operating-system account").waitFor();
  await stage.newChat();
  stage.model.answers.push({ say: "Seven." });
  await stage.say("How many days has a week?");
  await stage.answerOf("Seven.").waitFor();
  await stage.idle();
  await stage.accessible("a chat of a server");
  await stage.page.getByRole("button", { name: "Log out" }).click();
  await stage.page.getByRole("heading", { name: "Log in to Dragoman" }).waitFor();
  await stage.visit(address);
  await stage.logIn(viv);
  await stage.page.locator(".chat-row").first().click();
  await stage.answerOf("Seven.").waitFor();
  await stage.page.getByText("Your role lets you look at this chat only.").waitFor();
  expect((await stage.page.locator("#composer").count()) === 0, "somebody who may look only can write");
  await stage.accessible("a chat that is looked at");
  // Another role is there without a reload, and a revoked token ends the page with a word.
  execFileSync(stage.binary, ["serve", "tokens", "change", "viv", "--role", "drive"], { env: stage.environment, cwd: stage.project });
  await stage.page.locator("#composer").waitFor();
  execFileSync(stage.binary, ["serve", "tokens", "revoke", "viv"], { env: stage.environment, cwd: stage.project });
  await stage.page.getByText("The token was revoked").waitFor();
  await stage.page.getByRole("heading", { name: "Log in to Dragoman" }).waitFor();
  await server.stop();
}

export const flows = { chat, control, attached, keyboard, roles };
