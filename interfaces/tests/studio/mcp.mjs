// An MCP server with one tool, over its pipes.
import { createInterface } from "node:readline";

const inputSchema = { type: "object", properties: { zone: { type: "string" } } };

const answers = {
  initialize: (params) => ({ protocolVersion: params.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: "clock", version: "3.1.4" } }),
  "tools/list": () => ({ tools: [{ name: "tell_time", description: "Tells the time.", inputSchema }] }),
  "tools/call": (params) => ({ content: [{ type: "text", text: `It is 12:34 in ${params.arguments.zone}.` }] }),
  ping: () => ({}),
};

for await (const line of createInterface({ input: process.stdin })) {
  const { id, method, params = {} } = JSON.parse(line);
  if (id === undefined) continue;
  const answer = answers[method];
  const outcome = answer === undefined ? { error: { code: -32601, message: `no method ${method}` } } : { result: answer(params) };
  process.stdout.write(`${JSON.stringify({ jsonrpc: "2.0", id, ...outcome })}\n`);
}
