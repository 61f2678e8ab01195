// ---- Names of referenced items, in place of their keys ----

import { useEffect, useState } from "react";
import { PLAN } from "../plan";
import { itemsOf } from "./paging";
import { choicesCall, nameOf, relationOf } from "./reference";
import { fieldOf, textOf } from "./values";
import { own, withAll } from "./vetted";
import type { CallState, Column, Data, ListedResource, Resource, Ui, Values } from "./types";

/** The names that named columns show, by view and key: one page of each list that they lead to. */
export function useColumnNames(ui: Ui, resource: ListedResource): Values {
  const [names, setNames] = useState<Values>({});
  const targets = resource.list.columns
    .filter((column) => column.named === true)
    .flatMap((column) => relationOf(resource, column.field)?.resource ?? []);
  const wanted = [...new Set(targets.map((target) => target.id))].join(" ");
  useEffect(() => {
    if (wanted === "") return undefined;
    const controller = new AbortController();
    let isWanted = true;
    targets.forEach((target) => {
      const operation = target.list === undefined ? undefined : PLAN.operations.at(target.list.operation);
      const call =
        operation === undefined ? undefined : choicesCall(operation, target as ListedResource, {}, "", { index: 0 });
      if (operation === undefined || call === undefined) return;
      ui.perform(operation, call, controller).then((state) => {
        if (isWanted) setNames((before) => withAll(before, namesOf(target as ListedResource, state)));
      });
    });
    return () => {
      isWanted = false;
      controller.abort();
    };
  }, [wanted, ui.stamp, ui.session, ui.turn]);
  return names;
}

/** The names of loaded items, by view and key. */
export function namesOf(resource: ListedResource, state: CallState): Values {
  const key = (resource.keys ?? []).find((one) => one.guessed !== true);
  if (key === undefined) return {};
  const pairs = itemsOf(resource.list, state).map((item) => {
    const text = textOf(fieldOf(item, key.field));
    return [`${resource.id} ${text}`, nameOf(resource, item, text)];
  });
  return Object.fromEntries(pairs);
}

/** The name that stands for the key in a named column; undefined where it is not known. */
export function columnName(resource: Resource, column: Column, item: Data, names: Values): string | undefined {
  const target = column.named === true ? relationOf(resource, column.field)?.resource : undefined;
  return target === undefined ? undefined : own(names, `${target.id} ${textOf(fieldOf(item, column.field))}`);
}
