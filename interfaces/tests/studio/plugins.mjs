// Flows about plugins: trying, adding, removing; and tools that a wish asks for, each call after a click.
import { join } from "node:path";
import { specificationOf } from "./api.mjs";
import { expect, until } from "./page.mjs";

/** What the model of `tools` answers: a call first, then a title with what the call brought. */
export function replyWithTool(prompt) {
  const time = /It is (\d\d:\d\d) in/.exec(prompt)?.[1];
  if (time !== undefined) return { edits: [{ edit: "title", title: `Shop at ${time}` }] };
  if (prompt.includes("did not allow this call")) return { edits: [{ edit: "title", title: "Shop at some time" }] };
  return { tool: { server: "clock", name: "tell_time", arguments: { zone: "Oslo" }, reason: "The wish needs the time." } };
}

async function openPlugins({ page }) {
  await page.getByRole("button", { name: "Plugins", exact: true }).click();
  const panel = page.getByRole("dialog", { name: "Plugins" });
  await panel.waitFor();
  return panel;
}

async function addServer(panel, name, command) {
  await panel.getByLabel("Name").fill(name);
  await panel.getByLabel("Command or address").fill(command);
  await panel.getByRole("button", { name: "Add", exact: true }).click();
  return panel.locator(".plugins .card", { hasText: name });
}

async function closePlugins({ page }) {
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
}

const clockCommand = () => `node "${join(import.meta.dirname, "mcp.mjs")}"`;

/** MCP servers: one that runs, one that does not, trying again, removing after a question. */
export async function plugins(stage) {
  const { page } = stage;
  const panel = await openPlugins(stage);
  await panel.getByText("No plugins").waitFor();
  await stage.accessible("no plugins");
  const clock = await addServer(panel, "clock", clockCommand());
  await clock.locator(".badge", { hasText: "Ready" }).waitFor();
  await clock.getByText("tell_time").waitFor();
  await clock.getByText(/^MCP 20\d\d-|^3\.1\.4$/).waitFor();
  const broken = await addServer(panel, "broken", "/nowhere/at-all");
  await broken.locator(".badge", { hasText: "Failed" }).waitFor();
  await stage.accessible("plugins");
  await broken.getByRole("button", { name: "Remove broken" }).click();
  await page.getByRole("dialog", { name: "Remove broken?" }).getByRole("button", { name: "Remove" }).click();
  await broken.waitFor({ state: "detached" });
  await clock.getByRole("button", { name: "Try clock" }).click();
  await clock.locator(".badge", { hasText: "Ready" }).waitFor();
}

/** A wish asks for a tool: denied, allowed once, named by its version, missed after its server was removed. */
export async function tools(stage) {
  const { page } = stage;
  const panel = await openPlugins(stage);
  const clock = await addServer(panel, "clock", clockCommand());
  await clock.getByText("tell_time").waitFor();
  await closePlugins(stage);
  await stage.prepare();
  const question = page.getByRole("dialog", { name: "Allow this tool call?" });
  await stage.say("Put the time of day into the heading");
  await question.getByText("Oslo").waitFor();
  await question.getByText("The wish needs the time.").waitFor();
  await stage.accessible("a tool call to be confirmed");
  await question.getByRole("button", { name: "Deny" }).click();
  await stage.shown(2);
  await stage.interface.getByText("Shop at some time").first().waitFor();
  await stage.logged("The tool call tell_time of clock was denied");
  expect((await answers(page)) === 0, "a call that was denied was made");
  await stage.say("Put the hour into the heading");
  await question.getByRole("button", { name: "Allow once" }).click();
  await stage.shown(3);
  await stage.interface.getByText("Shop at 12:34").first().waitFor();
  await stage.logged('The tool call tell_time of clock was allowed: {"zone":"Oslo"}');
  expect((await answers(page)) === 1, "the tool was not called once");
  await page.locator(".message", { hasText: "Used tell_time of clock" }).waitFor();
  await firstVersionWithTool(stage, question);
  await until(async () => (await answers(page)) === 1, "the call of the other tab is not in its console");
  await page.locator(".tab").nth(0).click();
  await stage.shown(3);
  await removeUsed(stage);
}

/** A wish beside the specification may ask for a tool too. */
async function firstVersionWithTool(stage, question) {
  const { page, shop } = stage;
  await page.getByRole("button", { name: "New tab" }).click();
  await page.locator(".intake").waitFor();
  await page.getByLabel("A change to the interface (optional)").fill("Put the time of day into the heading");
  await stage.drop("shop.yaml", specificationOf(shop.origin));
  await question.getByRole("button", { name: "Allow once" }).click();
  await stage.shown(1);
  await stage.interface.getByText("Shop at 12:34").first().waitFor();
}

/** How often the tool has answered, for the tab that is shown. */
const answers = (page) => page.locator(".entry", { hasText: "The tool tell_time of clock answered" }).count();

async function removeUsed(stage) {
  const { page } = stage;
  const panel = await openPlugins(stage);
  const clock = panel.locator(".plugins .card", { hasText: "clock" });
  await clock.getByText("Used by Corner shop").waitFor();
  await clock.getByRole("button", { name: "Remove clock" }).click();
  const warning = page.getByRole("dialog", { name: "Remove clock?" });
  await warning.getByText("These interfaces use it").waitFor();
  await stage.accessible("the warning before a used plugin is removed");
  await warning.getByRole("button", { name: "Remove" }).click();
  await panel.getByText("No plugins").waitFor();
  await closePlugins(stage);
  const banner = page.locator(".banner", { hasText: "tell_time of clock" });
  await banner.waitFor();
  await stage.restore(3, 1, 4);
  await banner.waitFor({ state: "detached" });
  await stage.restore(4, 3, 5);
  await banner.waitFor();
  await stage.accessible("an interface that misses a tool");
  await stage.interface.getByText("Shop at 12:34").first().waitFor();
  await page.getByRole("button", { name: "Version 5" }).click();
  const history = page.getByRole("dialog", { name: "Version history" });
  await history.locator(".version", { hasText: "Version 5" }).getByText("tell_time of clock").waitFor();
}
