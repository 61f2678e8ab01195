// ---- Routes: every view has a text that leads to it; the page that shows the interface may put it into its address ----

import { useState } from "react";
import { PLAN } from "../plan";
import { isKeyValue } from "./browser";
import { encoded } from "./calls";
import { isAllowed, resourceOf } from "./resource-screen";
import { queryOfAddress } from "./sending";
import { ownEntries } from "./vetted";
import type { Page } from "./types";

/** The text of a view, such as `/Books/item?bookId=7`. */
export function routeOf(page: Page) {
  const pairs = ownEntries(page.known)
    .filter((pair) => isKeyValue(pair.at(1)))
    .map(([name, value]) => `${encodeURIComponent(name)}=${encoded(value)}`);
  const query = pairs.length === 0 ? "" : `?${pairs.join("&")}`;
  if (page.kind === "incoming") return "/webhooks";
  if (page.kind === "overview" || page.resource === undefined) return "/";
  if (page.kind === "item") return `/${page.resource}/item${query}`;
  if (page.kind === "form") return `/${page.resource}/form/${page.operation}${query}`;
  return page.unfolded === undefined ? `/${page.resource}${query}` : `/${page.resource}/call/${page.unfolded}${query}`;
}

/** The view of a text; the overview where the text leads nowhere. */
export function pageOfRoute(route: string): Page {
  const parts = String(route)
    .split("?")[0]
    .split("/")
    .filter((part) => part !== "");
  const known = queryOfAddress(route);
  if (parts.at(0) === "webhooks") return { kind: "incoming" };
  const resource = PLAN.resources.find((one) => one.id === parts.at(0) && one.removed !== true);
  if (resource === undefined) return startPage();
  const number = Number(parts.at(2));
  const isOwn = parts.at(2) !== undefined && resource.operations.includes(number);
  if (parts.at(1) === "item") return { kind: "item", resource: resource.id, known };
  if (parts.at(1) === "form" && isOwn && isAllowed(number))
    return { kind: "form", resource: resource.id, operation: number, known };
  if (parts.at(1) === "call" && isOwn) return { kind: "resource", resource: resource.id, known, unfolded: number };
  return { kind: "resource", resource: resource.id, known };
}

/** The view above another, for the way back where there is no history. */
export function parentOf(page: Page): Page {
  const resource = page.resource === undefined ? undefined : resourceOf(page.resource);
  if (page.kind === "form" && page.operation === resource!.edits)
    return { kind: "item", resource: page.resource, known: page.known };
  if (page.kind === "form" || page.kind === "item") {
    const keys = (resource!.keys ?? []).map((key) => key.parameter);
    return {
      kind: "resource",
      resource: page.resource,
      known: Object.fromEntries(ownEntries(page.known).filter(([name]) => !keys.includes(name))),
    };
  }
  return { kind: "overview" };
}

/** The views from the overview to this one. */
export function trailOf(page: Page): Page[] {
  if (page.kind === "overview" || routeOf(page) === routeOf(startPage())) return [page];
  return [...trailOf(parentOf(page)), page];
}

/** A single resource needs no overview. */
export function startPage(): Page {
  const shown = PLAN.resources.filter((resource) => resource.removed !== true);
  return shown.length === 1 ? { kind: "resource", resource: shown[0].id, known: {} } : { kind: "overview" };
}

/** The route, from the page that shows the interface or from here, and how to move. */
export function useRoutes(
  route?: string,
  whenRouted?: (route: string, isReplacing: boolean) => void,
  whenLeft?: () => void,
) {
  const [inner, setInner] = useState(["/"]);
  const [visited, setVisited] = useState<string[]>([]);
  const current = route === undefined ? inner[inner.length - 1] : route === "" ? "/" : route;
  const move = (next: string, isReplacing?: boolean) => {
    if (route === undefined) setInner(isReplacing ? [...inner.slice(0, -1), next] : [...inner, next]);
    else whenRouted?.(next, isReplacing === true);
    if (isReplacing !== true) setVisited([...visited.slice(-50), current]);
  };
  const leave = (parent: string) => {
    if (visited.at(-1) !== parent) {
      move(parent, true);
      return;
    }
    setVisited(visited.slice(0, -1));
    if (route === undefined) setInner(inner.slice(0, -1));
    else whenLeft?.();
  };
  return { route: current, travel: move, leave, isMoved: visited.length > 0 };
}
