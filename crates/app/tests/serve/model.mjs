// A model over HTTP (Chat Completions): each request takes the next answer of the flow.
import { createServer } from "node:http";

/** `{say, reason, calls: [{name, input}], until}`: `until` is a promise that the end of the answer waits for. */
export async function startModel() {
  const model = { answers: [], requests: [] };
  const server = createServer((request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => void answer(model, JSON.parse(Buffer.concat(parts).toString() || "{}"), response).catch(() => response.destroy()));
  });
  await new Promise((done) => server.listen(0, "127.0.0.1", done));
  const sockets = new Set();
  server.on("connection", (socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  model.url = `http://127.0.0.1:${server.address().port}/v1`;
  model.stop = () => {
    for (const socket of sockets) socket.destroy();
    server.close();
  };
  /** What the model was sent last, as text. */
  model.lastRequest = () => JSON.stringify(model.requests.at(-1) ?? {});
  return model;
}

async function answer(model, body, response) {
  // A title is not a part of a flow: the chat keeps its first words.
  if (JSON.stringify(body).includes("Answer with a title of at most six words")) {
    response.writeHead(400, { "Content-Type": "application/json" });
    response.end(JSON.stringify({ error: { message: "no title" } }));
    return;
  }
  response.writeHead(200, { "Content-Type": "text/event-stream" });
  const send = (value) => response.write(`data: ${JSON.stringify(value)}\n\n`);
  const delta = (part, reason = null) => send({ id: "1", object: "chat.completion.chunk", choices: [{ index: 0, delta: part, finish_reason: reason }] });
  model.requests.push(body);
  const given = model.answers.shift() ?? { say: "Nothing more was prepared." };
  delta({ role: "assistant", content: "" });
  if (given.reason !== undefined) delta({ reasoning_content: given.reason });
  for (const piece of (given.say ?? "").match(/[\s\S]{1,12}/g) ?? []) delta({ content: piece });
  await given.until;
  for (const [index, call] of (given.calls ?? []).entries()) {
    delta({ tool_calls: [{ index, id: `call-${model.requests.length}-${index}`, type: "function", function: { name: `eca__${call.name}`, arguments: JSON.stringify(call.input) } }] });
  }
  delta({}, given.calls === undefined ? "stop" : "tool_calls");
  send({ id: "1", choices: [], usage: { prompt_tokens: 12_000, completion_tokens: 340, total_tokens: 12_340, prompt_tokens_details: { cached_tokens: 9000 } } });
  response.end("data: [DONE]\n\n");
}
