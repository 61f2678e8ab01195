// ---- The typed client: every operation of the specification as a function ----

import { PLAN } from "../plan";
import { bodyOf, gathered, headerText, pathText, queryPairs } from "./calls";
import { valueAt } from "./values";
import { own, sendRequest, withAll } from "./vetted";
import type { Answer, Data, Operation, Request, Values } from "./types";

/** The functions of a description: `{ name: { input, answer } }` gives `name(input, options)`. */
export type Api<T> = {
  [K in keyof T]: T[K] extends { input: infer I; answer: infer A }
    ? (input: I, options?: SendOptions) => Promise<A>
    : never;
};

export interface SendOptions {
  /** Headers besides those of the operation, credentials among them. */
  headers?: Values;
  signal?: AbortSignal;
  /** The server, by its index in the plan. */
  server?: number;
  /** Sends the request in place of fetch. */
  request?: Request;
}

/** An answer that says that the call failed. */
export class ApiError extends Error {
  readonly answer: Answer;

  constructor(operation: Operation, answer: Answer, reason: string) {
    super(`${operation.signature} answered ${answer.status}${reason === "" ? "" : `: ${reason}`}`);
    this.name = "ApiError";
    this.answer = answer;
  }
}

/** Functions for these operations, by the index of each in the plan. */
export function makeApi<T>(operations: Record<keyof T, number>): Api<T> {
  const pairs = Object.entries<number>(operations).map(([name, index]) => [
    name,
    (input: Values, options?: SendOptions) => send(PLAN.operations.at(index), input, options),
  ]);
  return Object.fromEntries(pairs);
}

/** Sends one operation: `input` has its parameters by name, and its body as `body`. */
export async function send(operation: Operation, input: Values, options: SendOptions = {}): Promise<Data> {
  const parts = requestOf(operation, input);
  const answer = await (options.request ?? sendRequest)({
    operation: operation.signature,
    method: operation.method,
    path: parts.path,
    query: parts.query,
    headers: withAll(parts.headers, options.headers),
    body: parts.body,
    signal: options.signal,
    server: operation.server ?? options.server ?? 0,
  });
  const errors = operation.queryText === undefined ? undefined : own(answer.data, "errors");
  if (!answer.ok || Array.isArray(errors)) {
    const reason = own(Array.isArray(errors) ? errors[0] : answer.data, "message");
    throw new ApiError(operation, answer, typeof reason === "string" ? reason : "");
  }
  return operation.result === undefined ? answer.data : valueAt(answer.data, operation.result);
}

function requestOf(operation: Operation, input: Values) {
  let path = operation.path;
  const query: [string, Data][] = [];
  const headers: Values = {};
  const variables: Values = {};
  for (const parameter of operation.inputs ?? []) {
    const value = own(input, parameter.name);
    if (value === undefined) continue;
    if (parameter.place === "path") path = path.split(`{${parameter.name}}`).join(pathText(parameter, value));
    else if (parameter.place === "header") headers[parameter.name] = headerText(value);
    else if (parameter.place === "variable") variables[parameter.name] = value;
    else if (parameter.place !== "cookie") query.push(...queryPairs(parameter, value));
  }
  const isGraph = operation.queryText !== undefined;
  const body = isGraph
    ? { query: operation.queryText, variables }
    : operation.body && bodyOf(operation.body, own(input, "body"));
  if (body !== undefined)
    headers["Content-Type"] = isGraph ? "application/json" : (operation.body?.contentType ?? "application/json");
  return { path, query: gathered(query), headers, body };
}
