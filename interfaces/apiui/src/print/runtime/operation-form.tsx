// ---- The form of an operation: its inputs and body, checked before it is called ----

import { useRef, useState } from "react";
import { PLAN } from "../plan";
import { isKeyValue } from "./browser";
import { buildCall, inputKey, inputProblems, startDrafts } from "./calls";
import { fieldsOf, valueOf } from "./drafts";
import { editedBody, hasNoChanges, isChangedElsewhere, shownBody, startBody } from "./edits";
import { Field } from "./fields";
import { ObjectFields } from "./groups";
import { targetOf } from "./guards";
import { Button, FailureState } from "./parts";
import { problemsOf } from "./problems";
import { FormPlace, referenceOf, useName } from "./reference";
import { fieldProblems } from "./refusals";
import { ResultView } from "./result";
import { needsSignIn } from "./sending";
import { Snippets } from "./snippets";
import { StreamView } from "./stream";
import { labelOf, scalarText } from "./values";
import { own, withAll, withOwn } from "./vetted";
import type { BodyForm, CallState, Data, Draft, Edit, Input, Operation, Problem, Ui, Values } from "./types";

/** The most of a stream that is kept, in characters. */
export const MOST_RECEIVED = 1000000;

/**
 * The inputs and the body of an operation, checked before it is called. `edit` is given where an existing item is
 * changed: `{ item, base, etag, isWhole, reread }`, of which `base` is the object that the API sent.
 */
export function OperationForm({
  ui,
  operation,
  known,
  edit,
  label,
  whenDone,
  whenCancelled,
  isPlain,
  hides,
  subject,
}: {
  ui: Ui;
  operation: Operation;
  known?: Values;
  edit?: Edit;
  label: string;
  whenDone?: (state: CallState) => void;
  whenCancelled?: () => void;
  isPlain?: boolean;
  hides?: string[];
  /** The record that the operation is about, in words. */
  subject?: string;
}) {
  const [starts] = useState(() => startDrafts(operation, known ?? {}));
  const [drafts, setDrafts] = useState(starts);
  const [bodyStart] = useState(() => startBody(operation, edit?.base));
  const [bodyDraft, setBodyDraft] = useState(bodyStart);
  const [problems, setProblems] = useState<Problem[]>([]);
  const [state, setState] = useState<CallState>({ phase: "waiting" });
  const [question, setQuestion] = useState("");
  const [isLast, setIsLast] = useState(false);
  const [received, setReceived] = useState<string>();
  const controller = useRef<AbortController | undefined>(undefined);
  const summary = useRef<HTMLDivElement>(null);
  const isBusy = state.phase === "loading";
  const isPut = operation.method === "PUT" && operation.queryText === undefined;
  const form = operation.body;
  const show = (found: Data) => {
    setProblems(found);
    if (found.length > 0) summary.current?.focus();
    return found.length === 0;
  };
  const send = (base: Data) => {
    const body =
      form === undefined
        ? undefined
        : edit === undefined
          ? valueOf(form.input, bodyDraft)
          : editedBody(operation, base, bodyStart, bodyDraft);
    const call = buildCall(
      operation,
      drafts,
      body,
      edit === undefined ? undefined : { item: edit.item, starts, known: edit.known, record: operation.record },
    );
    const headers = edit?.etag === undefined ? call.headers : withAll({ "If-Match": edit.etag }, call.headers);
    if (edit !== undefined && !isPut && hasNoChanges(operation, body, starts, drafts)) {
      setState({ phase: "waiting" });
      ui.tell("Nothing was changed, so nothing was sent.");
      whenCancelled?.();
      return;
    }
    const sent = { path: call.path, query: call.query, headers, body: call.body };
    const whenPart = (text: string) => setReceived((before) => `${before ?? ""}${text}`.slice(-MOST_RECEIVED));
    controller.current = new AbortController();
    setReceived(undefined);
    ui.perform(operation, sent, controller.current, operation.inParts === true ? whenPart : undefined).then((next) => {
      setState(next);
      if (next.phase === "done") whenDone?.(next);
      else show(fieldProblems(operation, bodyDraft, next.data));
    });
  };
  const currentCall = () =>
    buildCall(operation, drafts, form === undefined ? undefined : valueOf(form.input, bodyDraft), undefined);
  const run = (isSure?: boolean) => {
    const found = [
      ...(operation.inputs ?? []).flatMap((input) =>
        inputProblems(
          input,
          own(drafts, inputKey(input)),
          edit === undefined ? undefined : own(starts, inputKey(input)),
        ),
      ),
      ...(form === undefined
        ? []
        : problemsOf(
            form.input,
            bodyDraft,
            "body",
            edit?.base === undefined ? undefined : bodyStart,
            edit !== undefined && !isPut,
          )),
    ];
    if (!show(found)) return;
    setQuestion("");
    if (operation.destroys === true && isSure !== true) {
      setIsLast(true);
      const target = targetOf(operation, currentCall());
      setQuestion(
        `${operation.title}${subject === undefined ? "" : ` for ${subject}`}? This sends ${target} and cannot be undone.`,
      );
      return;
    }
    setIsLast(false);
    if (isPut && edit !== undefined && edit.isWhole !== true && isSure !== true) {
      setQuestion(
        "The API cannot be asked for all of this record. Saving replaces it with what this form holds: fields that are not shown may be lost.",
      );
      return;
    }
    setState({ phase: "loading" });
    if (!isPut || form === undefined || edit?.reread === undefined || edit.etag !== undefined) {
      send(edit?.base);
      return;
    }
    edit.reread().then((base) => {
      if (base === undefined)
        setState({
          phase: "failed",
          status: 0,
          message: "The record could not be read again before saving, so nothing was sent.",
        });
      else if (isSure !== true && isChangedElsewhere(form.input, edit.base, base, bodyStart, bodyDraft)) {
        setState({ phase: "waiting" });
        setQuestion("Somebody else changed a field that you changed too. Saving replaces their value with yours.");
      } else send(base);
    });
  };
  const inputs = (operation.inputs ?? []).flatMap(
    (input) => shownInput(input, input.name, hides ?? [], operation.record) ?? [],
  );
  const named = (operation.inputs ?? []).filter(
    (input) => referenceOf(input) !== undefined && isKeyValue(valueOf(input, own(drafts, inputKey(input)))),
  );
  const unplaced = problems.filter((one) => one.place === "");
  return (
    <FormPlace.Provider value={{ ui, known }}>
      <form
        className="dragoman-form"
        noValidate
        onSubmit={(event) => {
          event.preventDefault();
          run();
        }}
      >
        <div
          ref={summary}
          tabIndex={-1}
          role="alert"
          className={problems.length > 0 ? "dragoman-problem" : "dragoman-hidden"}
        >
          {problems.length > 0
            ? `${problems.length === 1 ? "One entry needs" : `${problems.length} entries need`} attention.`
            : ""}
          {unplaced.map((one, index) => (
            <p key={index}>{one.message}</p>
          ))}
        </div>
        {form === undefined ? null : (
          <BodyFields
            form={edit === undefined ? form : shownBody(operation)}
            draft={bodyDraft}
            problems={problems}
            whenChanged={(next) => setBodyDraft(next)}
          />
        )}
        {inputs.map((input) => (
          <Field
            key={inputKey(input)}
            input={withOwn(input, "bare", input.place !== "variable")}
            draft={own(drafts, inputKey(input))}
            place={inputKey(input)}
            problems={problems}
            whenChanged={(next) => setDrafts((before) => withOwn(before, inputKey(input), next))}
          />
        ))}
        {needsSignIn(operation, ui.held) && PLAN.auth && !ui.isHosted ? (
          <p className="dragoman-hint">
            This needs credentials. <Button label="Sign in" kind="quiet" isSmall whenPressed={() => ui.askSignIn()} />
          </p>
        ) : null}
        {question === "" ? null : (
          <div
            className="dragoman-confirm"
            role="alertdialog"
            aria-label={isLast ? "Confirm what cannot be undone" : "Confirm saving"}
          >
            <span className="dragoman-grow">
              {question}
              {isLast
                ? named.map((input) => (
                    <RecordName
                      key={inputKey(input)}
                      ui={ui}
                      input={input}
                      value={valueOf(input, own(drafts, inputKey(input)))}
                    />
                  ))
                : null}
            </span>
            <Button
              label={isLast ? "Do it" : "Save anyway"}
              kind="danger"
              signature={operation.signature}
              whenPressed={() => run(true)}
            />
            <Button label={isLast ? "Keep" : "Go on editing"} whenPressed={() => setQuestion("")} />
          </div>
        )}
        <div className="dragoman-actions">
          <Button
            label={isBusy ? "Working…" : label}
            kind={operation.destroys === true ? "danger" : "primary"}
            submits
            isBusy={isBusy}
            signature={operation.signature}
          />
          {whenCancelled === undefined ? null : <Button label="Cancel" whenPressed={() => whenCancelled()} />}
          {isBusy && operation.inParts === true ? (
            <Button label="Stop" whenPressed={() => controller.current?.abort()} />
          ) : null}
        </div>
        {state.phase === "failed" && !(received !== undefined && controller.current?.signal.aborted === true) ? (
          <FailureState ui={ui} operation={operation} state={state} whenRetried={() => run()} />
        ) : null}
        {received === undefined ? null : <StreamView text={received} isOpen={isBusy} result={operation.result} />}
        {state.phase === "done" && isPlain !== true && received === undefined ? (
          <ResultView ui={ui} state={state} />
        ) : null}
        {isPlain === true ? null : <Snippets ui={ui} operation={operation} makeCall={() => currentCall()} />}
      </form>
    </FormPlace.Provider>
  );
}

/** What a form shows of an input: without the keys that the view knows, and without what chooses the item. */
export function shownInput(input: Input, path: string, hides: string[], record?: string[]): Input | undefined {
  if (hides.includes(path)) return undefined;
  if (input.kind !== "object" || !hides.some((one) => one.startsWith(`${path}.`))) return input;
  const place = (record ?? []).join(".");
  if (record !== undefined && place !== path && !place.startsWith(`${path}.`)) return undefined;
  const fields = fieldsOf(input).flatMap((field) => shownInput(field, `${path}.${field.name}`, hides, record) ?? []);
  return fields.length === 0 ? undefined : withAll(input, { shape: undefined, fields });
}

export function BodyFields({
  form,
  draft,
  problems,
  whenChanged,
}: {
  form: BodyForm;
  draft: Draft;
  problems: Problem[];
  whenChanged: (next: Data) => void;
}) {
  const { input } = form;
  if (input.kind === "object" && draft !== undefined)
    return (
      <ObjectFields
        input={input}
        draft={draft}
        place="body"
        problems={problems}
        whenChanged={(next) => whenChanged(next)}
      />
    );
  return (
    <Field
      input={input}
      draft={draft}
      place="body"
      problems={problems}
      caption={form.kind === "file" ? "File" : "Content"}
      whenChanged={(next) => whenChanged(next)}
    />
  );
}

/** The record that an input names, in a question: by its name and its key. */
export function RecordName({ ui, input, value }: { ui: Ui; input: Input; value: Data }) {
  const { resource, key } = referenceOf(input)!;
  const name = useName(ui, resource, key.parameter, value);
  const text = scalarText(value);
  return (
    <strong>{` ${labelOf(input.name)}: ${name === undefined || name === text ? text : `${name} (${text})`}`}</strong>
  );
}
