// ---- References: the key of another item, chosen by its name ----

import { createContext, useContext, useEffect, useId, useState } from "react";
import { PLAN } from "../plan";
import { isKeyValue } from "./browser";
import { buildCall, inputKey, missingInputs, startDrafts, stillMissing } from "./calls";
import { itemsOf, largestPage, listCall, nextMark, pagingNames, shownColumns } from "./paging";
import { Button } from "./parts";
import { routeOf } from "./routes";
import { useAnswer } from "./sending";
import { fieldOf, inText, isNested, scalarText, shownText, textOf } from "./values";
import { withOwn } from "./vetted";
import type { Data, Input, ListedResource, Mark, Operation, Page, Resource, Ui, Values } from "./types";

/** Where a form is: what its controls may load, and the values that the view knows. */
export const FormPlace = createContext<{ ui: Ui; known?: Values } | undefined>(undefined);

/** How many items are loaded at a time. */
export const CHOICES = 100;

/** Parameters by which lists are searched. */
export const SEARCH_NAMES = /^(q|query|search|search_?(text|term|query)|keywords?|term|name)$/i;

/** A text that is a key and no name. */
export const KEY_LIKE = /^-?[0-9]+$|^[0-9a-f-]{16,}$/i;

/** The resource that an input refers to, and the field of its items that is the key. */
export function referenceOf(input: Input) {
  const resource = input.reference === undefined ? undefined : PLAN.resources.at(input.reference);
  const key = (resource?.keys ?? []).at(0);
  if (resource?.list === undefined || resource.removed === true || key === undefined || key.guessed === true)
    return undefined;
  return { resource: resource as ListedResource, key };
}

/** What people call an item: its name, or the first columns of its list. */
export function nameOf(resource: Resource, item: Data, key: string) {
  const text = textOf(item);
  if (isNested(item) && text !== "" && !text.startsWith("{") && text !== key) return text;
  const columns = resource.list === undefined ? [] : shownColumns(resource.list);
  const texts = columns.map((column) => shownText(fieldOf(item, column.field), column.display));
  return (
    texts
      .filter((one) => one !== "" && one !== key)
      .slice(0, 2)
      .join(", ") || key
  );
}

/** The name of the item with this key, once the API has told it. */
export function useName(ui: Ui, resource: Resource, parameter: string, value: Data, known?: Values) {
  const operation = resource.detail === undefined ? undefined : PLAN.operations.at(resource.detail);
  const drafts = operation === undefined ? {} : startDrafts(operation, withOwn(known, parameter, value));
  const isReady = operation !== undefined && isKeyValue(value) && stillMissing(ui, operation, drafts).length === 0;
  const call = isReady ? buildCall(operation, drafts, undefined) : undefined;
  const state = useAnswer(ui, operation ?? PLAN.operations.at(0), call, 0);
  return state.phase === "done" ? nameOf(resource, state.result, scalarText(value)) : undefined;
}

/** An item that a field refers to, by its name; a press leads to it. */
export function ReferenceLink({
  ui,
  resource,
  parameter,
  value,
}: {
  ui: Ui;
  resource: Resource;
  parameter: string;
  value: Data;
}) {
  const name = useName(ui, resource, parameter, value);
  const key = scalarText(value);
  const page: Page = { kind: "item", resource: resource.id, known: withOwn({}, parameter, value) };
  return (
    <span className="dragoman-states">
      <button type="button" className="dragoman-textbutton" data-testid="reference" onClick={() => ui.goTo(page)}>
        <bdi>{name ?? key}</bdi>
      </button>
      {name === undefined || name === key ? null : <span className="dragoman-hint">{key}</span>}
    </span>
  );
}

/** The call that loads the items to choose from; undefined where something is missing for it. */
export function choicesCall(operation: Operation, resource: ListedResource, known: Values, wanted: string, mark: Mark) {
  const drafts = startDrafts(operation, known);
  const search = searchInput(operation);
  const asked = search === undefined || wanted === "" ? drafts : withOwn(drafts, inputKey(search), wanted);
  const missing = missingInputs(operation, asked).filter((input) => !pagingNames(resource.list).includes(input.name));
  const size = Math.min(CHOICES, largestPage(operation, resource.list.paging) ?? CHOICES);
  return missing.length > 0 ? undefined : listCall(operation, resource.list, asked, size, mark);
}

export function searchInput(operation: Operation) {
  return (operation.inputs ?? []).find((input) => input.kind === "text" && SEARCH_NAMES.test(input.name));
}

/** A control for a key: its items are searched by name, and any other value can be typed. */
export function ReferenceControl({
  id,
  input,
  text,
  described,
  isWrong,
  whenChanged,
}: {
  id: string;
  input: Input;
  text: string;
  described?: string;
  isWrong: boolean;
  whenChanged: (next: string) => void;
}) {
  const { ui, known } = useContext(FormPlace)!;
  const { resource, key } = referenceOf(input)!;
  const [isOpen, setIsOpen] = useState(false);
  const [wanted, setWanted] = useState("");
  const [name, setName] = useState<string>();
  const loaded = useName(ui, resource, key.parameter, text, known);
  const shown = name ?? loaded;
  const page: Page = { kind: "item", resource: resource.id, known: withOwn(known, key.parameter, text) };
  const choose = (item: Data) => {
    const value = scalarText(fieldOf(item, key.field));
    setName(nameOf(resource, item, value));
    setIsOpen(false);
    setWanted("");
    whenChanged(value);
  };
  const take = (typed: string) => {
    setName(undefined);
    setIsOpen(false);
    setWanted("");
    whenChanged(typed);
  };
  return (
    <div className="dragoman-reference">
      <ReferenceSearch
        id={id}
        ui={ui}
        known={known ?? {}}
        resource={resource}
        field={key.field}
        text={isOpen ? wanted : text === "" || shown === undefined || shown === text ? text : `${shown} (${text})`}
        wanted={wanted}
        isOpen={isOpen}
        isWrong={isWrong}
        isNeeded={input.required === true}
        described={described}
        example={input.example}
        whenTyped={(next) => {
          setWanted(next);
          setIsOpen(true);
        }}
        whenOpened={(next) => setIsOpen(next)}
        whenChosen={(item) => choose(item)}
        whenTaken={(typed) => take(typed)}
      />
      {resource.detail === undefined ? null : (
        <Button
          label={`Open ${inText(resource.singular)}`}
          kind="quiet"
          isSmall
          isBusy={text === ""}
          whenPressed={() => (ui.tools.openApart === undefined ? ui.goTo(page) : ui.tools.openApart(routeOf(page)))}
        />
      )}
    </div>
  );
}

/** The text control with the items that fit what was typed. */
export function ReferenceSearch({
  id,
  ui,
  known,
  resource,
  field,
  text,
  wanted,
  isOpen,
  isWrong,
  isNeeded,
  described,
  example,
  whenTyped,
  whenOpened,
  whenChosen,
  whenTaken,
}: {
  id: string;
  ui: Ui;
  known: Values;
  resource: ListedResource;
  field: string;
  text: string;
  wanted: string;
  isOpen: boolean;
  isWrong: boolean;
  isNeeded: boolean;
  described?: string;
  example?: string;
  whenTyped: (text: string) => void;
  whenOpened: (isOpen: boolean) => void;
  whenChosen: (item: Data) => void;
  whenTaken: (typed: string) => void;
}) {
  const listId = useId();
  const [at, setAt] = useState(0);
  const { found, state, isSettled, goOn } = useChoices(ui, resource, field, known, wanted, isOpen);
  const typed = wanted.trim();
  const shown = found.slice(0, 50);
  const isListed = isOpen && shown.length > 0;
  const leave = () => {
    if (!isOpen) return;
    whenOpened(false);
    if (typed === "") return;
    const same = found.find((item) => scalarText(fieldOf(item, field)) === typed);
    if (KEY_LIKE.test(typed) && same === undefined) whenTaken(typed);
    else if (same !== undefined || (isSettled && found.length === 1)) whenChosen(same ?? found.at(0));
    else if (isSettled && found.length === 0) whenTaken(typed);
  };
  return (
    <div className="dragoman-combobox">
      <input
        id={id}
        type="text"
        role="combobox"
        className="dragoman-input"
        autoComplete="off"
        value={text}
        placeholder={example ?? `Search ${inText(resource.title)}`}
        aria-expanded={isListed}
        aria-controls={isListed ? listId : undefined}
        aria-autocomplete="list"
        aria-activedescendant={isListed ? `${listId}-${at}` : undefined}
        aria-invalid={isWrong}
        aria-required={isNeeded}
        aria-describedby={described}
        onChange={(event) => {
          setAt(0);
          whenTyped(event.target.value);
        }}
        onClick={() => whenOpened(true)}
        onBlur={() => leave()}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") {
            event.preventDefault();
            if (isOpen) setAt(Math.min(at + 1, shown.length - 1));
            else whenOpened(true);
          }
          if (event.key === "ArrowUp") {
            event.preventDefault();
            setAt(Math.max(at - 1, 0));
          }
          if (event.key === "Escape") whenOpened(false);
          if (event.key === "Enter" && isOpen) {
            event.preventDefault();
            if (shown.at(at) !== undefined) whenChosen(shown.at(at));
            else if (typed !== "" && (isSettled || KEY_LIKE.test(typed))) whenTaken(typed);
          }
        }}
      />
      {isOpen ? (
        <div className="dragoman-choices">
          {isListed ? (
            <ul role="listbox" id={listId} aria-label="Choices">
              {shown.map((item, index) => (
                <Choice
                  key={index}
                  id={`${listId}-${index}`}
                  name={nameOf(resource, item, scalarText(fieldOf(item, field)))}
                  value={scalarText(fieldOf(item, field))}
                  isActive={index === at}
                  whenChosen={() => whenChosen(item)}
                />
              ))}
            </ul>
          ) : null}
          <span className="dragoman-hint" role="status">
            {state === "loading"
              ? "Loading…"
              : state === "failed"
                ? "The choices could not be loaded; type the key."
                : found.length === 0
                  ? "Nothing fits; what you typed is used as the key."
                  : `${found.length} found.`}
          </span>
          {goOn === undefined ? null : (
            <button
              type="button"
              className="dragoman-textbutton"
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => goOn()}
            >
              Load more
            </button>
          )}
        </div>
      ) : null}
    </div>
  );
}

export function Choice({
  id,
  name,
  value,
  isActive,
  whenChosen,
}: {
  id: string;
  name: string;
  value: string;
  isActive: boolean;
  whenChosen: () => void;
}) {
  return (
    <li
      id={id}
      role="option"
      aria-selected={isActive}
      onMouseDown={(event) => {
        event.preventDefault();
        whenChosen();
      }}
    >
      <bdi>{name}</bdi>
      <code className="dragoman-code">{value}</code>
    </li>
  );
}

/** The items that fit a text: searched by the API where it can, otherwise among those that are loaded. */
export function useChoices(
  ui: Ui,
  resource: ListedResource,
  field: string,
  known: Values,
  wanted: string,
  isOpen: boolean,
) {
  const operation = PLAN.operations.at(resource.list.operation);
  const isSearched = searchInput(operation) !== undefined;
  const [asked, setAsked] = useState("");
  const [mark, setMark] = useState<Mark>({ index: 0 });
  const [before, setBefore] = useState<Data[]>([]);
  useEffect(() => {
    if (!isSearched) return undefined;
    const timer = setTimeout(() => {
      setAsked(wanted.trim());
      setMark({ index: 0 });
      setBefore([]);
    }, 250);
    return () => clearTimeout(timer);
  }, [wanted]);
  const call = isOpen ? choicesCall(operation, resource, known, asked, mark) : undefined;
  const state = useAnswer(ui, operation, call, 0);
  const items = itemsOf(resource.list, state);
  const all = [...before, ...items].filter((item) => isKeyValue(fieldOf(item, field)));
  const words = wanted.trim().toLowerCase();
  const fits = (item: Data) => {
    const key = scalarText(fieldOf(item, field));
    return `${nameOf(resource, item, key)} ${key}`.toLowerCase().includes(words);
  };
  const found = words === "" || (isSearched && asked.toLowerCase() === words) ? all : all.filter(fits);
  const size = Math.min(CHOICES, largestPage(operation, resource.list.paging) ?? CHOICES);
  const next = nextMark(PLAN.pagination ? resource.list.paging : undefined, size, mark, state, items);
  const goOn = () => {
    setBefore([...before, ...items]);
    setMark(next!);
  };
  // While the choices are on their way nobody knows whether a text is a name or a key.
  const isSettled = ["done", "failed"].includes(state.phase) && (!isSearched || asked === wanted.trim());
  return { found, state: state.phase, isSettled, goOn: next === undefined ? undefined : goOn };
}

/** Whether a control can let people choose: a form says where it is, and the list can be asked for. */
export function canChoose(input: Input, place: { ui: Ui; known?: Values } | undefined) {
  const found = referenceOf(input);
  if (found === undefined || place === undefined) return false;
  const operation = PLAN.operations.at(found.resource.list.operation);
  return choicesCall(operation, found.resource, place.known ?? {}, "", { index: 0 }) !== undefined;
}

/** Where a field of an item leads, if it holds the key of another item. */
export function relationOf(resource: Resource, field: string) {
  const relation = (resource.relations ?? []).find((one) => one.field === field);
  const target = relation === undefined ? undefined : PLAN.resources.at(relation.resource);
  return relation === undefined || target === undefined || target.removed === true
    ? undefined
    : { resource: target, parameter: relation.parameter };
}
