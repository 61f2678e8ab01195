// ---- Groups: inputs that hold others ----

import { useId } from "react";
import { Control } from "./controls";
import { fieldsOf, itemOf, newEntry, newVariant, startDraft } from "./drafts";
import { Field, StateButton } from "./fields";
import { Badge, Button } from "./parts";
import { own, withOwn } from "./vetted";
import type { Data, GroupProps, ListEntry, VariantDraft } from "./types";

/** A control that holds others, in a box with its name. */
export function GroupField({ input, draft, place, problems, whenChanged, label }: GroupProps) {
  const problem = problems.find((one) => one.place === place);
  const id = useId();
  return (
    <div className="dragoman-field" role="group" aria-labelledby={id}>
      <span className="dragoman-legend" id={id}>
        {label}
        {input.required === true ? <span className="dragoman-need"> *</span> : null}
      </span>
      {input.note ? <span className="dragoman-hint">{input.note}</span> : null}
      <GroupBody
        input={input}
        draft={draft}
        place={place}
        problems={problems}
        whenChanged={(next) => whenChanged(next)}
        label={label}
      />
      {problem ? (
        <span className="dragoman-problem" role="alert">
          {problem.message}
        </span>
      ) : null}
    </div>
  );
}

export function GroupBody({ input, draft, place, problems, whenChanged, label }: GroupProps) {
  if (typeof draft === "string")
    return (
      <Control
        id={`dragoman-group-${place}`}
        input={{ name: input.name, kind: "json" }}
        draft={draft}
        isWrong={false}
        whenChanged={(next) => whenChanged(next)}
      />
    );
  if (draft === undefined || draft === null) {
    const begin = {
      name: "",
      kind: input.kind,
      shape: input.shape,
      fields: input.fields,
      alternatives: input.alternatives,
    };
    return (
      <div className="dragoman-states">
        {draft === null ? <Badge text="null" /> : null}
        <Button
          label={`Add ${label?.toLowerCase() ?? ""}`}
          isSmall
          whenPressed={() =>
            whenChanged(["list", "map"].includes(input.kind) ? [newEntry(input, "")] : startDraft(begin, true))
          }
        />
        {draft === null && input.required !== true ? (
          <StateButton text="Leave out" label={label ?? ""} whenPressed={() => whenChanged(undefined)} />
        ) : null}
        {draft === undefined && input.nullable === true ? (
          <StateButton text="Set to null" label={label ?? ""} whenPressed={() => whenChanged(null)} />
        ) : null}
      </div>
    );
  }
  return (
    <div className="dragoman-box">
      <GroupFields
        input={input}
        draft={draft}
        place={place}
        problems={problems}
        whenChanged={(next) => whenChanged(next)}
        label={label}
      />
      <div className="dragoman-states">
        {input.required === true ? null : (
          <StateButton text="Leave out" label={label ?? ""} whenPressed={() => whenChanged(undefined)} />
        )}
        {input.nullable === true ? (
          <StateButton text="Set to null" label={label ?? ""} whenPressed={() => whenChanged(null)} />
        ) : null}
      </div>
    </div>
  );
}

export function GroupFields({ input, draft, place, problems, whenChanged, label }: GroupProps) {
  if (input.kind === "list")
    return (
      <ListField
        input={input}
        draft={draft}
        place={place}
        problems={problems}
        whenChanged={(next) => whenChanged(next)}
        label={label}
      />
    );
  if (input.kind === "map")
    return (
      <MapField
        input={input}
        draft={draft}
        place={place}
        problems={problems}
        whenChanged={(next) => whenChanged(next)}
      />
    );
  if (input.kind === "object")
    return (
      <ObjectFields
        input={input}
        draft={draft}
        place={place}
        problems={problems}
        whenChanged={(next) => whenChanged(next)}
      />
    );
  return (
    <VariantField
      input={input}
      draft={draft}
      place={place}
      problems={problems}
      whenChanged={(next) => whenChanged(next)}
    />
  );
}

export function ObjectFields({ input, draft, place, problems, whenChanged }: GroupProps) {
  return fieldsOf(input).map((field) => (
    <Field
      key={field.name}
      input={field}
      draft={own(draft, field.name)}
      place={`${place}/${field.name}`}
      problems={problems}
      whenChanged={(next) => whenChanged(withOwn(draft, field.name, next))}
    />
  ));
}

export function ListField({ input, draft, place, problems, whenChanged, label }: GroupProps<ListEntry[]>) {
  const item = itemOf(input);
  return (
    <>
      {draft.map((entry, index) => (
        <div key={index} className="dragoman-row">
          <div className="dragoman-grow">
            <Field
              input={item}
              draft={entry.draft}
              place={`${place}/${index}`}
              problems={problems}
              caption={`${label} ${index + 1}`}
              whenChanged={(next) =>
                whenChanged(draft.map((old, at) => (at === index ? withOwn(old, "draft", next) : old)))
              }
            />
          </div>
          <Button
            label="Remove"
            kind="quiet"
            isSmall
            whenPressed={() => whenChanged(draft.filter((old, at) => at !== index))}
          />
        </div>
      ))}
      <div>
        <Button label="Add entry" isSmall whenPressed={() => whenChanged([...draft, newEntry(input, "")])} />
      </div>
    </>
  );
}

export function MapField({ input, draft, place, problems, whenChanged }: GroupProps<ListEntry[]>) {
  const item = itemOf(input);
  const changed = (index: number, name: string, next: Data) =>
    whenChanged(draft.map((old, at) => (at === index ? withOwn(old, name, next) : old)));
  return (
    <>
      {draft.map((entry, index) => (
        <div key={index} className="dragoman-row">
          <Field
            input={{ name: "name", kind: "text", required: true }}
            draft={entry.name}
            place={`${place}/${index}/name`}
            problems={problems}
            whenChanged={(next) => changed(index, "name", next)}
          />
          <div className="dragoman-grow">
            <Field
              input={item}
              draft={entry.draft}
              place={`${place}/${index}`}
              problems={problems}
              whenChanged={(next) => changed(index, "draft", next)}
            />
          </div>
          <Button
            label="Remove"
            kind="quiet"
            isSmall
            whenPressed={() => whenChanged(draft.filter((old, at) => at !== index))}
          />
        </div>
      ))}
      <div>
        <Button label="Add entry" isSmall whenPressed={() => whenChanged([...draft, newEntry(input, "")])} />
      </div>
    </>
  );
}

export function VariantField({ input, draft, place, problems, whenChanged }: GroupProps<VariantDraft>) {
  const id = useId();
  const chosen = input.alternatives!.at(draft.chosen)!;
  const inner = chosen.input;
  const wanted = {
    name: "",
    kind: inner.kind,
    shape: inner.shape,
    fields: inner.fields,
    choices: inner.choices,
    item: inner.item,
    alternatives: inner.alternatives,
    discriminator: inner.discriminator,
    required: true,
  };
  return (
    <>
      <div className="dragoman-field">
        <label htmlFor={id}>Kind</label>
        <select
          id={id}
          className="dragoman-input"
          value={String(draft.chosen)}
          onChange={(event) => whenChanged(newVariant(input, Number(event.target.value)))}
        >
          {input.alternatives!.map((one, index) => (
            <option key={index} value={String(index)}>
              {one.label}
            </option>
          ))}
        </select>
      </div>
      {inner.kind === "object" && typeof draft.draft !== "string" ? (
        <ObjectFields
          input={inner}
          draft={draft.draft ?? {}}
          place={`${place}/${draft.chosen}`}
          problems={problems}
          whenChanged={(next) => whenChanged(withOwn(draft, "draft", next))}
        />
      ) : (
        <Field
          input={wanted}
          draft={draft.draft}
          place={`${place}/${draft.chosen}`}
          problems={problems}
          whenChanged={(next) => whenChanged(withOwn(draft, "draft", next))}
        />
      )}
    </>
  );
}
