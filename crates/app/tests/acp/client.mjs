// A whole session through the official TypeScript client. Prints one line of JSON: what the client saw.
// Environment: AGENT (the program), WORKSPACE (the session's folder), SDK (a folder with the package installed).
import { spawn } from "node:child_process";
import { writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const { AGENT, WORKSPACE, SDK } = process.env;
const package_ = createRequire(join(SDK, "package.json")).resolve("@agentclientprotocol/sdk");
const { client, methods, ndJsonStream, PROTOCOL_VERSION } = await import(pathToFileURL(package_));

const seen = { stops: [], permissions: [], reads: [], writes: [], texts: {}, loaded: [] };
const unsaved = { [join(WORKSPACE, "hello.txt")]: "the unsaved word is plover\n" };
const answers = ["allow_once", "reject_once", "allow_always"];
let updates = [];
let firstText = () => {};

function start() {
  const program = spawn(AGENT, ["acp"], { stdio: ["pipe", "pipe", "inherit"], cwd: WORKSPACE });
  const exited = new Promise((resolve) => program.on("exit", resolve));
  const stream = ndJsonStream(Writable.toWeb(program.stdin), Readable.toWeb(program.stdout));
  const app = client({ name: "test" })
    .onNotification(methods.client.session.update, ({ params }) => {
      updates.push(params.update);
      if (params.update.sessionUpdate === "agent_message_chunk") firstText();
    })
    .onRequest(methods.client.session.requestPermission, ({ params }) => {
      const optionId = answers.shift();
      seen.permissions.push({ title: params.toolCall.title, kinds: params.options.map((it) => it.kind), optionId });
      return { outcome: { outcome: "selected", optionId } };
    })
    .onRequest(methods.client.fs.readTextFile, ({ params }) => {
      seen.reads.push(params.path);
      if (!(params.path in unsaved)) throw new Error("There is no such file.");
      return { content: unsaved[params.path] };
    })
    .onRequest(methods.client.fs.writeTextFile, ({ params }) => {
      seen.writes.push(params.path);
      unsaved[params.path] = params.content;
      writeFileSync(params.path, params.content);
      return {};
    });
  return { stream, app, program, exited };
}

function text(kind) {
  return updates.filter((it) => it.sessionUpdate === kind).map((it) => it.content.text).join("");
}

async function initialize(agent) {
  return await agent.request(methods.agent.initialize, {
    protocolVersion: PROTOCOL_VERSION,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
    clientInfo: { name: "sdk-test", version: "1" },
  });
}

const first = start();
await first.app.connectWith(first.stream, async (agent) => {
  seen.initialize = await initialize(agent);
  const session = await agent.request(methods.agent.session.new, { cwd: WORKSPACE, mcpServers: [] });
  seen.session = session.sessionId;
  seen.modes = session.modes.availableModes.map((it) => it.id);
  const sessionId = session.sessionId;
  const say = (words) =>
    agent.request(methods.agent.session.prompt, { sessionId, prompt: [{ type: "text", text: words }] });
  for (const words of ["read", "write", "run", "make"]) {
    updates = [];
    seen.stops.push((await say(words)).stopReason);
    seen.texts[words] = text("agent_message_chunk");
    seen.texts[`${words} thought`] = text("agent_thought_chunk");
    seen.texts[`${words} calls`] = updates.filter((it) => it.toolCallId).map((it) => it.status ?? "pending");
  }
  const begun = new Promise((resolve) => (firstText = resolve));
  const stopped = say("count");
  await begun;
  await agent.notify(methods.agent.session.cancel, { sessionId });
  seen.stops.push((await stopped).stopReason);
  await agent.request(methods.agent.session.setMode, { sessionId, modeId: "plan" });
  const listed = await agent.request(methods.agent.session.list, { cwd: WORKSPACE });
  seen.listed = listed.sessions.map((it) => [it.sessionId, it.title]);
});
first.program.stdin.end();
seen.firstExit = await first.exited;

updates = [];
const second = start();
await second.app.connectWith(second.stream, async (agent) => {
  await initialize(agent);
  const sessionId = seen.session;
  const loaded = await agent.request(methods.agent.session.load, { sessionId, cwd: WORKSPACE, mcpServers: [] });
  seen.loadedMode = loaded.modes.currentModeId;
  seen.loaded = updates.map((it) => it.sessionUpdate);
  seen.loadedUser = text("user_message_chunk");
  await agent.request(methods.agent.session.delete, { sessionId });
  seen.left = (await agent.request(methods.agent.session.list, {})).sessions.length;
});
second.program.stdin.end();
seen.secondExit = await second.exited;
console.log(JSON.stringify(seen));
process.exit(0);
