// ---- A list: one page of items and the parameters it was asked with ----

import { useEffect, useState } from "react";
import { PLAN } from "../plan";
import { ItemBrowser } from "./browser";
import { inputKey, startDrafts, stillMissing } from "./calls";
import { DataView } from "./data";
import { Field } from "./fields";
import { itemsOf, knownValues, largestPage, listCall, nextMark, otherAnswer, pagingNames, totalOf } from "./paging";
import { Button, EmptyState, FailureState, LoadingState } from "./parts";
import { FormPlace } from "./reference";
import { useAnswer } from "./sending";
import { activeConditions, conditionText, withConditions } from "./showing";
import { Pager } from "./table";
import { inText, labelOf } from "./values";
import { own, withAll, withOwn } from "./vetted";
import type { Condition, Data, List, ListedResource, Operation, Ui, Values } from "./types";

export function ItemList({ ui, resource, known }: { ui: Ui; resource: ListedResource; known?: Values }) {
  const { list } = resource;
  const operation = PLAN.operations.at(list.operation);
  const kept = ui.keptView("list");
  const [drafts, setDrafts] = useState(() => kept?.applied ?? startDrafts(operation, known ?? {}));
  const [applied, setApplied] = useState(drafts);
  const [marks, setMarks] = useState(kept?.marks ?? [{ index: 0 }]);
  const [pageSize, setPageSize] = useState(kept?.pageSize ?? list.pageSize);
  const [turn, setTurn] = useState(0);
  const [tab, setTab] = useState<string | undefined>(kept?.tab);
  useEffect(() => {
    ui.keepView("list", { applied, marks, pageSize, tab });
  }, [applied, marks, pageSize, tab]);
  const conditions = activeConditions(list, tab);
  const asked = withConditions(operation, conditions, applied);
  const missing = stillMissing(ui, operation, asked).filter((input) => !pagingNames(list).includes(input.name));
  const mark = marks.at(-1);
  const call = missing.length > 0 ? undefined : listCall(operation, list, asked, pageSize, mark);
  const state = useAnswer(ui, operation, call, turn + ui.turn);
  const items = itemsOf(list, state);
  const other = otherAnswer(list, state);
  const isPaged = PLAN.pagination && list.paging !== undefined;
  const restart = () => {
    setMarks([{ index: 0 }]);
    setTurn(turn + 1);
  };
  return (
    <section className="dragoman-panel" aria-label={resource.title}>
      <SavedTabs
        list={list}
        tab={tab}
        whenChosen={(next) => {
          setTab(next);
          restart();
        }}
      />
      <FormPlace.Provider value={{ ui, known }}>
        <QueryBar
          operation={operation}
          list={list}
          fixed={conditions.flatMap((condition) => (condition.parameter === undefined ? [] : [condition.parameter]))}
          drafts={drafts}
          whenChanged={(next) => setDrafts(next)}
          whenApplied={() => {
            setApplied(drafts);
            restart();
          }}
        />
      </FormPlace.Provider>
      {conditions.length === 0 ? null : <FixedFilters list={list} conditions={conditions} />}
      {state.phase === "waiting" ? (
        <EmptyState
          title="Fill in what the list needs"
          text={`${missing.map((input) => labelOf(input.name)).join(", ")} ${missing.length === 1 ? "is" : "are"} required to load ${inText(resource.title)}.`}
        />
      ) : null}
      {state.phase === "loading" ? <LoadingState text={`Loading ${inText(resource.title)}…`} /> : null}
      {state.phase === "failed" ? (
        <FailureState ui={ui} operation={operation} state={state} whenRetried={() => setTurn(turn + 1)} />
      ) : null}
      {other === undefined ? null : <OtherAnswer value={other.value} status={state.status} />}
      {state.phase === "done" && other === undefined ? (
        <ItemBrowser
          ui={ui}
          resource={resource}
          operation={operation}
          items={items}
          known={knownValues(operation, asked)}
          conditions={conditions.filter((condition) => condition.parameter === undefined)}
          isPaged={isPaged}
          pageSize={pageSize}
        />
      ) : null}
      {isPaged && other === undefined && (state.phase === "done" || state.phase === "loading") ? (
        <Pager
          page={mark.index}
          total={totalOf(list, state)}
          count={items.length}
          pageSize={pageSize}
          largest={largestPage(operation, list.paging)}
          signature={operation.signature}
          canGoOn={nextMark(list.paging, pageSize, mark, state, items) !== undefined}
          whenBack={() => setMarks(marks.slice(0, -1))}
          whenNext={() => setMarks([...marks, nextMark(list.paging, pageSize, mark, state, items)])}
          whenSized={
            list.paging?.sizeParameter === undefined
              ? undefined
              : (size) => {
                  setPageSize(size);
                  restart();
                }
          }
        />
      ) : null}
    </section>
  );
}

/** The saved views of a list, as tabs. */
export function SavedTabs({
  list,
  tab,
  whenChosen,
}: {
  list: List;
  tab: string | undefined;
  whenChosen: (tab: string | undefined) => void;
}) {
  const saved = list.saved ?? [];
  if (saved.length === 0) return null;
  return (
    <div className="dragoman-tabs" role="group" aria-label="Saved views" data-testid="saved-views">
      <Button
        label="All"
        kind="quiet"
        isSmall
        isPressed={tab === undefined}
        whenPressed={() => whenChosen(undefined)}
      />
      {saved.map((one) => (
        <Button
          key={one.title}
          label={one.title}
          kind="quiet"
          isSmall
          isPressed={tab === one.title}
          whenPressed={() => whenChosen(one.title)}
        />
      ))}
    </div>
  );
}

/** What limits the rows, and whether the API does it. */
export function FixedFilters({ list, conditions }: { list: List; conditions: Condition[] }) {
  const texts = conditions.map((condition) => conditionText(list, condition));
  const isLocal = conditions.some((condition) => condition.parameter === undefined);
  return (
    <p className="dragoman-hint dragoman-fixed" data-testid="fixed-filters">
      {`Only rows with ${texts.join("; ")}.${isLocal ? " Chosen among the rows that are loaded." : ""}`}
    </p>
  );
}

export function OtherAnswer({ value, status }: { value: Data; status?: number }) {
  if (value === null || value === undefined || value === "")
    return (
      <div className="dragoman-padded" data-testid="other-answer">
        <p className="dragoman-hint">
          {`The API sent ${value === null && status !== 204 ? "null" : "no content"} (${status}) in place of a list, so it is not known whether there are any.`}
        </p>
      </div>
    );
  return (
    <div className="dragoman-padded" data-testid="other-answer">
      <p className="dragoman-hint">The answer is not the list that the specification describes. This is what came:</p>
      <DataView value={value} depth={0} />
    </div>
  );
}

/** The parameters of the list itself: what the API filters by. */
export function QueryBar({
  operation,
  list,
  fixed,
  drafts,
  whenChanged,
  whenApplied,
}: {
  operation: Operation;
  list: List;
  /** Parameters that a fixed filter fills. */
  fixed: string[];
  drafts: Values;
  whenChanged: (next: Data) => void;
  whenApplied: () => void;
}) {
  const [isWide, setIsWide] = useState(false);
  const hidden = [...pagingNames(list), ...fixed];
  const inputs = (operation.inputs ?? []).filter(
    (input) =>
      !hidden.includes(input.name) && (input.required === true || !["header", "cookie"].includes(input.place ?? "")),
  );
  const sorted = [
    ...inputs.filter((input) => input.required === true),
    ...inputs.filter((input) => input.required !== true),
  ];
  const shown = isWide
    ? sorted
    : sorted.slice(0, Math.max(4, sorted.filter((input) => input.required === true).length));
  if (inputs.length === 0) return null;
  return (
    <form
      className="dragoman-toolbar"
      noValidate
      role="search"
      aria-label="Parameters of the list"
      onSubmit={(event) => {
        event.preventDefault();
        whenApplied();
      }}
    >
      {shown.map((input) => (
        <Field
          key={inputKey(input)}
          input={withAll(input, { note: undefined, bare: true })}
          draft={own(drafts, inputKey(input))}
          place={inputKey(input)}
          problems={[]}
          whenChanged={(next) => whenChanged(withOwn(drafts, inputKey(input), next))}
        />
      ))}
      <Button label="Apply" submits signature={operation.signature} />
      {sorted.length > shown.length || isWide ? (
        <Button
          label={isWide ? "Fewer filters" : `${sorted.length - shown.length} more`}
          kind="quiet"
          whenPressed={() => setIsWide(!isWide)}
        />
      ) : null}
    </form>
  );
}
