// A turn with an approval through the official TypeScript client and its streamable HTTP transport. Prints one line of JSON: what
// it saw. Environment: URL (the address of the server), TOKEN, SDK (a folder with the package installed).
import { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const { URL: address, TOKEN, SDK } = process.env;
const resolve = (name) => pathToFileURL(createRequire(join(SDK, "package.json")).resolve(name));
const { client, methods, PROTOCOL_VERSION } = await import(resolve("@agentclientprotocol/sdk"));
const { createHttpStream } = await import(resolve("@agentclientprotocol/sdk/experimental/http-client"));

const seen = { text: "", permissions: 0 };
const app = client({ name: "test" })
  .onNotification(methods.client.session.update, ({ params }) => {
    if (params.update.sessionUpdate === "agent_message_chunk") seen.text += params.update.content.text;
  })
  .onRequest(methods.client.session.requestPermission, () => {
    seen.permissions += 1;
    return { outcome: { outcome: "selected", optionId: "allow_once" } };
  });
const stream = createHttpStream(address, { headers: { Authorization: `Bearer ${TOKEN}` } });
await app.connectWith(stream, async (agent) => {
  const initialized = await agent.request(methods.agent.initialize, { protocolVersion: PROTOCOL_VERSION, clientCapabilities: {} });
  seen.version = initialized.protocolVersion;
  const { sessionId } = await agent.request(methods.agent.session.new, { cwd: "/w", mcpServers: [] });
  const prompt = [{ type: "text", text: "Hello" }];
  seen.stop = (await agent.request(methods.agent.session.prompt, { sessionId, prompt })).stopReason;
});
console.log(JSON.stringify(seen));
process.exit(0);
