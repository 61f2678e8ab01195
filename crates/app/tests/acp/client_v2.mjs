// A session through the official TypeScript client of the draft of version 2. Prints one line of JSON: what the client saw.
// Environment: AGENT (the program), WORKSPACE (the session's folder), SDK (a folder with the package installed).
import { spawn } from "node:child_process";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const { AGENT, WORKSPACE, SDK } = process.env;
const package_ = createRequire(join(SDK, "package.json")).resolve("@agentclientprotocol/sdk/experimental/v2");
const { client, methods, ndJsonStream } = await import(pathToFileURL(package_));

const seen = { stops: [], states: [], permissions: [], texts: {}, cancelled: [] };
let updates = [];
let idle = () => {};
let shown = () => {};

const program = spawn(AGENT, ["acp"], { stdio: ["pipe", "pipe", "inherit"], cwd: WORKSPACE });
const exited = new Promise((resolve) => program.on("exit", resolve));
const stream = ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout));
const app = client({ name: "test" })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    if (decoded().includes("begun")) shown();
    if (params.update.sessionUpdate !== "state_update") return;
    seen.states.push(params.update.state);
    if (params.update.state === "idle" && params.update.stopReason) idle(params.update);
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.permissions.push({ title: params.title, subject: params.subject.type });
    return { outcome: { outcome: "selected", optionId: "allow_once" } };
  });

// The text of whole messages, which have a list of blocks, and of chunks, which have one block.
function textOf(some) {
  return some.flatMap((it) => it.content).map((it) => it.text).join("");
}

function text(...kinds) {
  return textOf(updates.filter((it) => kinds.includes(it.sessionUpdate)));
}

// The output of a command, when it can be stopped.
function decoded() {
  const chunks = updates.filter((it) => it.sessionUpdate === "terminal_output_chunk");
  return chunks.map((it) => Buffer.from(it.data, "base64").toString()).join("");
}

await app.connectWith(stream, async (agent) => {
  seen.initialize = await agent.request(methods.agent.initialize, {
    protocolVersion: 2,
    info: { name: "sdk-test", version: "1" },
    capabilities: {},
  });
  const session = await agent.request(methods.agent.session.new, { cwd: WORKSPACE, mcpServers: [] });
  const sessionId = session.sessionId;
  seen.options = session.configOptions.map((it) => it.configId);
  for (const words of ["read", "write"]) {
    updates = [];
    const ended = new Promise((resolve) => (idle = resolve));
    const prompt = [{ type: "text", text: words }];
    const { messageId } = await agent.request(methods.agent.session.prompt, { sessionId, prompt });
    const end = await ended;
    seen.stops.push(end.stopReason);
    seen.texts[words] = text("agent_message", "agent_message_chunk");
    seen.texts[`${words} own`] = textOf(updates.filter((it) => it.messageId === messageId));
  }
  // One call is stopped, and the turn goes on.
  updates = [];
  const ended = new Promise((resolve) => (idle = resolve));
  const begun = new Promise((resolve) => (shown = resolve));
  await agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: "wait" }] });
  await begun;
  const toolCallId = updates.findLast((it) => it.capabilities?.cancel && it.toolCallId).toolCallId;
  await agent.request(methods.agent.toolCall.cancel, { sessionId, toolCallId });
  seen.stops.push((await ended).stopReason);
  seen.texts.wait = text("agent_message", "agent_message_chunk");
  seen.output = decoded();
  seen.cancelled = updates.filter((it) => it.toolCallId === toolCallId && it.status).map((it) => it.status);
  const again = agent.request(methods.agent.toolCall.cancel, { sessionId, toolCallId });
  seen.again = await again.then(() => "accepted", (error) => error.code);
  const mode = { sessionId, configId: "mode", type: "id", value: "plan" };
  const set = await agent.request(methods.agent.session.setConfigOption, mode);
  seen.mode = set.configOptions.find((it) => it.configId === "mode").currentValue;
  await agent.request(methods.agent.session.close, { sessionId });
  updates = [];
  await agent.request(methods.agent.session.resume, { sessionId, cwd: WORKSPACE, replayFrom: { type: "start" } });
  seen.replayed = text("user_message");
  seen.listed = (await agent.request(methods.agent.session.list, {})).sessions.map((it) => it.sessionId === sessionId);
  await agent.request(methods.agent.session.delete, { sessionId });
});
program.stdin.end();
seen.exit = await exited;
console.log(JSON.stringify(seen));
process.exit(0);
