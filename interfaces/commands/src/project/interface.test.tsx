import { act } from "react";
import { createRoot } from "react-dom/client";
import { afterEach, describe, expect, it } from "vitest";
import { PLAN } from "../src/generated/plan";
import App from "../src/generated/runtime/App";
import { send } from "../src/generated/runtime/client";
import { pageOfRoute, routeOf } from "../src/generated/runtime/routes";
import { exactJsonText, parseExactJson } from "../src/generated/runtime/vetted";
import type { Request } from "../src/generated/runtime/types";

Object.assign(globalThis, { IS_REACT_ACT_ENVIRONMENT: true });

const shown = PLAN.resources.filter((resource) => resource.removed !== true);
const root = document.createElement("div");
document.body.append(root);

afterEach(() => {
  root.replaceChildren();
});

/** Shows a view with an API that answers every call with an empty list. */
async function show(route: string) {
  const calls: Parameters<Request>[0][] = [];
  const request: Request = async (call) => {
    calls.push(call);
    return { ok: true, status: 200, headers: {}, data: [] };
  };
  const mounted = createRoot(root);
  await act(async () => mounted.render(<App route={route} request={request} />));
  const text = root.textContent ?? "";
  const heading = root.querySelector("h1")?.textContent;
  await act(async () => mounted.unmount());
  return { calls, text, heading };
}

describe("the interface", () => {
  it("names the API", async () => {
    expect((await show("/")).text).toContain(PLAN.title);
  });

  it.each(shown.slice(0, 20).map((resource) => [resource.id, resource.title]))("opens %s", async (id, title) => {
    expect((await show(`/${id}`)).heading).toBe(title);
  });

  it("has an address for every view", () => {
    for (const resource of shown) {
      const route = routeOf({ kind: "item", resource: resource.id, known: { key: "7/8" } });
      expect(pageOfRoute(route)).toMatchObject({ kind: "item", resource: resource.id, known: { key: "7/8" } });
    }
  });
});

describe("the client", () => {
  it("keeps all digits of a number", () => {
    expect(exactJsonText(parseExactJson('{"id":9007199254740993}'))).toBe('{"id":9007199254740993}');
  });

  it("fills the path and reports errors", async () => {
    const operation = { signature: "GET /x/{id}", title: "X", method: "GET", path: "/x/{id}" };
    const inputs = [{ name: "id", kind: "text", place: "path" as const, required: true }];
    const request: Request = async (call) => ({ ok: false, status: 404, data: { message: call.path } });
    await expect(send({ ...operation, inputs }, { id: "a b" }, { request })).rejects.toThrow("404: /x/a%20b");
  });
});
