// What the chat asks a person: an approval, a question, a form. The first answer of all windows counts.
import { useId, useState } from "preact/hooks";
import { Icon } from "../../common/icons";
import { Button, Check, Field, TextField } from "../../common/parts";
import { answer } from "./actions";
import { mayDrive } from "./store";
import type { Answer, Ask } from "./types";

export function AskCard({ chat, ask }: { chat: string; ask: Ask }) {
  const [isSent, setIsSent] = useState(false);
  const id = useId();
  const give = (given: Answer) => {
    setIsSent(true);
    void answer(chat, ask.ask, given).finally(() => setIsSent(false));
  };
  return (
    <section class="ask" aria-labelledby={id}>
      <p class="ask-title" id={id}>
        <Icon name={ask.type === "approval" ? "shield" : "chat"} /> <span>{ask.type === "approval" ? `May this run? ${ask.text}` : ask.text}</span>
      </p>
      {mayDrive() ? null : <p class="note">Your role lets you look only: somebody else answers.</p>}
      {mayDrive() && ask.type === "approval" ? <Approval ask={ask} isSent={isSent} give={give} /> : null}
      {mayDrive() && ask.type === "question" ? <Question ask={ask} isSent={isSent} give={give} /> : null}
      {mayDrive() && ask.type === "form" ? <Form ask={ask} isSent={isSent} give={give} /> : null}
    </section>
  );
}

interface AnswerProps {
  ask: Ask;
  isSent: boolean;
  give: (given: Answer) => void;
}

function Approval({ ask, isSent, give }: AnswerProps) {
  const [reason, setReason] = useState<string>();
  const remembers = ask.remembers ?? [];
  return (
    <>
      <div class="row">
        <Button label="Allow" icon="check" kind="primary" isDisabled={isSent} whenPressed={() => give({ type: "allow", remember: false })} />
        {remembers.length === 0 ? null : (
          <Button label="Allow in this chat" hint={`Remembers until the chat is closed: ${remembers.join(", ")}`} isDisabled={isSent} whenPressed={() => give({ type: "allow", remember: true })} />
        )}
        <Button label="Deny" kind="danger" isDisabled={isSent} whenPressed={() => give({ type: "deny", remember: false, reason: reason?.trim() || null })} />
        {reason === undefined ? <Button label="Say why not" kind="quiet" whenPressed={() => setReason("")} /> : null}
      </div>
      {remembers.length === 0 ? null : (
        <p class="note">
          “Allow in this chat” remembers <code class="code">{remembers.join(", ")}</code>
        </p>
      )}
      {reason === undefined ? null : <TextField label="Reason, for the model" value={reason} whenChanged={setReason} />}
    </>
  );
}

function Question({ ask, isSent, give }: AnswerProps) {
  const [text, setText] = useState("");
  return (
    <>
      {ask.options === undefined || ask.options.length === 0 ? null : (
        <div class="options" role="group" aria-label="Choose an answer">
          {ask.options.map((option) => (
            <button key={option.label} type="button" class="chip" disabled={isSent} title={option.description ?? undefined} onClick={() => give({ type: "text", text: option.label })}>
              {option.label}
              {option.description === null ? null : <span class="note"> {option.description}</span>}
            </button>
          ))}
        </div>
      )}
      {ask.isFree === true ? (
        <form
          class="row own-answer"
          onSubmit={(event) => {
            event.preventDefault();
            if (text.trim() !== "") give({ type: "text", text });
          }}
        >
          <TextField label="Your answer" value={text} whenChanged={setText} />
          <Button label="Answer" kind="primary" type="submit" isDisabled={isSent || text.trim() === ""} />
        </form>
      ) : null}
      <div class="row">
        <Button label="Do not answer" kind="quiet" isDisabled={isSent} whenPressed={() => give({ type: "cancelled" })} />
      </div>
    </>
  );
}

interface Property {
  type?: string;
  title?: string;
  description?: string;
  enum?: unknown[];
  enumNames?: string[];
  default?: unknown;
}

/** Fields of text, numbers, choices and switches; what a form of an MCP server may have. */
function Form({ ask, isSent, give }: AnswerProps) {
  const schema = (ask.schema ?? {}) as { properties?: Record<string, Property>; required?: string[] };
  const properties = Object.entries(schema.properties ?? {});
  const required = new Set(schema.required ?? []);
  const [values, setValues] = useState<Record<string, unknown>>(() => Object.fromEntries(properties.filter(([, one]) => one.default !== undefined).map(([name, one]) => [name, one.default])));
  const set = (name: string, value: unknown) => setValues((before) => ({ ...before, [name]: value }));
  const isMissing = [...required].some((name) => values[name] === undefined || values[name] === "");
  const send = () => {
    const given = properties.filter(([name]) => values[name] !== undefined && values[name] !== "");
    const data = Object.fromEntries(given.map(([name, one]) => [name, one.type === "number" || one.type === "integer" ? Number(values[name]) : values[name]]));
    give({ type: "form", data });
  };
  return (
    <form
      class="stack"
      onSubmit={(event) => {
        event.preventDefault();
        send();
      }}
    >
      {properties.map(([name, one]) => (
        <FormField key={name} name={name} property={one} isRequired={required.has(name)} value={values[name]} set={(value) => set(name, value)} />
      ))}
      <div class="row">
        <Button label="Send" kind="primary" type="submit" isDisabled={isSent || isMissing} />
        <Button label="Do not answer" kind="quiet" isDisabled={isSent} whenPressed={() => give({ type: "cancelled" })} />
      </div>
    </form>
  );
}

function FormField({ name, property, isRequired, value, set }: { name: string; property: Property; isRequired: boolean; value: unknown; set: (value: unknown) => void }) {
  const label = `${property.title ?? name}${isRequired ? "" : " (optional)"}`;
  if (property.type === "boolean") return <Check label={label} note={property.description} value={value === true} whenChanged={set} />;
  if (Array.isArray(property.enum))
    return (
      <Field label={label} note={property.description}>
        {(id, described) => (
          <select id={id} class="input" aria-describedby={described} value={String(value ?? "")} onChange={(event) => set(event.currentTarget.value)}>
            <option value="">Choose…</option>
            {property.enum?.map((one, at) => (
              <option key={String(one)} value={String(one)}>
                {property.enumNames?.[at] ?? String(one)}
              </option>
            ))}
          </select>
        )}
      </Field>
    );
  return <TextField label={label} note={property.description} value={String(value ?? "")} whenChanged={set} />;
}
