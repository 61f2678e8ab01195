// A language model over HTTP, as far as a flow needs one: it answers each request with what `reply` makes of its prompt.
import { createServer } from "node:http";

/** Starts it; `prompts` is what came, `settings` is what makes it the default model of a user. */
export async function startModel(reply) {
  const model = { prompts: [] };
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => {
      // Lists of models and the like are not here.
      if (request.method !== "POST") return response.writeHead(404).end();
      const { messages } = JSON.parse(Buffer.concat(parts).toString());
      const prompt = messages.map(({ content }) => (typeof content === "string" ? content : JSON.stringify(content))).join("\n");
      model.prompts.push(prompt);
      const event = (choice) => `data: ${JSON.stringify({ id: "1", object: "chat.completion.chunk", model: "m1", choices: [{ index: 0, ...choice }] })}\n\n`;
      response.writeHead(200, { "Content-Type": "text/event-stream" });
      response.write(event({ delta: { role: "assistant", content: JSON.stringify(reply(prompt)) } }));
      response.end(`${event({ delta: {}, finish_reason: "stop" })}data: [DONE]\n\n`);
    });
  }).listen(0, "127.0.0.1");
  await new Promise((done) => server.once("listening", done));
  const url = `http://127.0.0.1:${server.address().port}/v1`;
  model.settings = { defaultModel: "fake/m1", providers: { fake: { api: "openai-chat", url, key: "sk-of-the-test", models: { m1: {} } } } };
  model.stop = () => {
    server.close();
    server.closeAllConnections();
  };
  return model;
}
