// Makes the pictures of docs/serve.
// Usage: node pictures.mjs BINARY WEB OUT   (BINARY: a dragoman with its page; WEB: target/web; OUT: docs/serve)
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { Editor, openStage } from "./page.mjs";

const [binary, web, out] = process.argv.slice(2).map((path) => resolve(path));
mkdirSync(out, { recursive: true });
const stage = await openStage({ binary, web, folder: mkdtempSync(join(tmpdir(), "serve-")) });
const { page, model } = stage;
const picture = async (name) => {
  await page.mouse.move(0, 0);
  await page.waitForTimeout(700);
  await page.screenshot({ path: join(out, `${name}.png`) });
};
const tasks = (...done) => ({
  name: "task",
  input: { tasks: ["Find why an empty cart fails", "Fix the sum", "Add a test for it"].map((text, index) => ({ text, status: done[index] ?? "pending" })) },
});
const edit = {
  name: "edit_file",
  input: { path: "price.py", original_content: "    return sum(item.price for item in items)", new_content: "    prices = [item.price for item in items or []]\n    return sum(prices, Decimal(0))" },
};
for (const [prompt, answer] of [["Why is the build slow?", "Most of the time goes into linking."], ["Rename the module prices", "It is named `price` now."]]) {
  await stage.newChat();
  model.answers.push({ say: answer });
  await stage.say(prompt);
  await stage.answerOf(answer.slice(0, 10)).waitFor();
  await stage.idle();
}
const editor = new Editor(stage);
await editor.call("initialize", { protocolVersion: 1, clientCapabilities: {} });
const { sessionId } = await editor.call("session/new", { cwd: stage.project, mcpServers: [] });
model.answers.push({ say: "The shop has one module." });
await editor.answer(editor.send("session/prompt", { sessionId, prompt: [{ type: "text", text: "What is in this project?" }] }));
await page.locator(".chat-row", { hasText: "What is in this project?" }).click();
await stage.answerOf("The shop has one module.").waitFor();
model.answers.push(
  { reason: "An empty cart is None here, not an empty list.", say: "An empty cart arrives as `None`, and `sum` cannot go through that.", calls: [tasks("done", "in_progress")] },
  { say: "I would make the function take both:", calls: [edit] },
  { calls: [{ name: "ask_user", input: { question: "Shall I add a test?", options: ["Yes, beside the others", "No"] } }] },
  { say: "Done. What changed:\n\n- `items or []` takes **None** for an empty cart\n- the sum starts at `Decimal(0)`\n\n```python\nassert total(None) == Decimal(0)\n```", calls: [tasks("done", "done", "done")] },
  { say: "The caller needs no special case any more." },
);
await stage.say("The total fails for an empty cart");
await stage.call("price.py").getByRole("button", { name: "Allow", exact: true }).waitFor();
await picture("approval-1280");
await page.setViewportSize({ width: 375, height: 740 });
await picture("approval-375");
await stage.call("price.py").getByRole("button", { name: "Allow", exact: true }).click();
await page.getByRole("group", { name: "Choose an answer" }).waitFor();
await picture("question-375");
await page.getByRole("button", { name: "Yes, beside the others" }).click();
await stage.answerOf("The caller needs no special case").waitFor();
await stage.idle();
await page.setViewportSize({ width: 1280, height: 800 });
await stage.theme("Dark");
await picture("chat-dark-1280");
await page.setViewportSize({ width: 375, height: 740 });
await page.getByRole("button", { name: "Back to the list" }).click();
await picture("list-375");
await editor.stop();
await stage.close();
process.exit(0);
