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

const seen = { stops: [], states: [], permissions: [], texts: {} };
let updates = [];
let idle = () => {};

const program = spawn(AGENT, ["acp"], { stdio: ["pipe", "pipe", "inherit"], cwd: WORKSPACE });
const exited = new Promise((resolve) => program.on("exit", resolve));
const stream = ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout));
const app = client({ name: "test" })
  .onNotification(methods.client.session.update, ({ params }) => {
    updates.push(params.update);
    if (params.update.sessionUpdate !== "state_update") return;
    seen.states.push(params.update.state);
    if (params.update.state === "idle" && params.update.stopReason) idle(params.update);
  })
  .onRequest(methods.client.session.requestPermission, ({ params }) => {
    seen.permissions.push({ title: params.title, subject: params.subject.type });
    return { outcome: { outcome: "selected", optionId: "allow_once" } };
  });

function text(kind) {
  return updates.filter((it) => it.sessionUpdate === kind).map((it) => it.content.text).join("");
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
    seen.texts[words] = text("agent_message_chunk");
    seen.texts[`${words} own`] = updates.filter((it) => it.messageId === messageId).map((it) => it.content.text).join("");
  }
  const mode = { sessionId, configId: "mode", type: "id", value: "plan" };
  const set = await agent.request(methods.agent.session.setConfigOption, mode);
  seen.mode = set.configOptions.find((it) => it.configId === "mode").currentValue;
  await agent.request(methods.agent.session.close, { sessionId });
  updates = [];
  await agent.request(methods.agent.session.resume, { sessionId, cwd: WORKSPACE, replayFrom: { type: "start" } });
  seen.replayed = text("user_message_chunk");
  seen.listed = (await agent.request(methods.agent.session.list, {})).sessions.map((it) => it.sessionId === sessionId);
  await agent.request(methods.agent.session.delete, { sessionId });
});
program.stdin.end();
seen.exit = await exited;
console.log(JSON.stringify(seen));
process.exit(0);
