// Small parts that every panel uses: buttons, fields, badges, states, dialogs, menus.
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";
import { Icon } from "./icons";
import type { IconName } from "./icons";
import type { Problem } from "./problem";

interface ButtonProps {
  label: string;
  icon?: IconName;
  kind?: "primary" | "plain" | "quiet" | "danger";
  isIconOnly?: boolean;
  isBusy?: boolean;
  isDisabled?: boolean;
  isPressed?: boolean;
  hint?: string;
  type?: "button" | "submit";
  whenPressed?: (event: MouseEvent) => void;
}

export function Button(props: ButtonProps) {
  const { label, icon, kind = "plain", isIconOnly = false, isBusy = false, isDisabled = false, isPressed, hint } = props;
  return (
    <button
      type={props.type ?? "button"}
      class={`button button-${kind}${isIconOnly ? " button-icon" : ""}`}
      aria-label={isIconOnly ? label : undefined}
      aria-pressed={isPressed}
      title={hint ?? (isIconOnly ? label : undefined)}
      disabled={isDisabled || isBusy}
      onClick={props.whenPressed}
    >
      {isBusy ? <span class="spinner" aria-hidden="true" /> : icon !== undefined ? <Icon name={icon} /> : null}
      {isIconOnly ? null : <span>{label}</span>}
    </button>
  );
}

interface FieldProps {
  label: string;
  note?: string;
  children: (id: string, described: string | undefined) => ComponentChildren;
}

export function Field({ label, note, children }: FieldProps) {
  const id = useId();
  const noteId = note === undefined ? undefined : `${id}-note`;
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children(id, noteId)}
      {note === undefined ? null : (
        <p class="note" id={noteId}>
          {note}
        </p>
      )}
    </div>
  );
}

interface TextFieldProps {
  label: string;
  value: string;
  note?: string;
  kind?: "text" | "url" | "password";
  placeholder?: string;
  isRequired?: boolean;
  isCode?: boolean;
  whenChanged: (text: string) => void;
}

export function TextField({ label, value, note, kind = "text", placeholder, isRequired, isCode, whenChanged }: TextFieldProps) {
  return (
    <Field label={label} note={note}>
      {(id, described) => (
        <input
          id={id}
          class={`input${isCode === true ? " code" : ""}`}
          {...{ type: kind as "text" }}
          value={value}
          placeholder={placeholder}
          required={isRequired}
          aria-describedby={described}
          autocomplete="off"
          spellcheck={false}
          onInput={(event) => whenChanged(event.currentTarget.value)}
        />
      )}
    </Field>
  );
}

export function Check({ label, note, value, whenChanged }: { label: string; note?: string; value: boolean; whenChanged: (value: boolean) => void }) {
  return (
    <label class="check">
      <input type="checkbox" checked={value} onChange={(event) => whenChanged(event.currentTarget.checked)} />
      <span>
        {label}
        {note === undefined ? null : <span class="note">{note}</span>}
      </span>
    </label>
  );
}

export type Tone = "neutral" | "good" | "warn" | "bad" | "accent";

export function Badge({ tone = "neutral", children }: { tone?: Tone; children: ComponentChildren }) {
  return <span class={`badge tone-${tone}`}>{children}</span>;
}

export function Dot({ tone, isBusy = false }: { tone: Tone; isBusy?: boolean }) {
  return <span class={`dot tone-${tone}${isBusy ? " is-busy" : ""}`} aria-hidden="true" />;
}

interface EmptyProps {
  icon: IconName;
  title: string;
  text: string;
  children?: ComponentChildren;
}

/** Nothing is here yet, and what to do about it. */
export function Empty({ icon, title, text, children }: EmptyProps) {
  return (
    <div class="empty">
      <span class="empty-icon">
        <Icon name={icon} />
      </span>
      <h2>{title}</h2>
      <p>{text}</p>
      {children === undefined ? null : <div class="row center">{children}</div>}
    </div>
  );
}

export function Loading({ text }: { text: string }) {
  return (
    <p class="loading" role="status">
      <span class="spinner" aria-hidden="true" /> {text}
    </p>
  );
}

/** What went wrong and what to do next. */
export function ProblemNote({ problem, children }: { problem: Problem; children?: ComponentChildren }) {
  return (
    <div class="callout tone-bad" role="alert">
      <Icon name="warning" />
      <div>
        <p class="callout-title">{problem.message}</p>
        {problem.hint === undefined ? null : <p>{problem.hint}</p>}
        {children === undefined ? null : <div class="row">{children}</div>}
      </div>
    </div>
  );
}

interface DialogProps {
  title: string;
  kind?: "sheet" | "box" | "wide";
  whenClosed: () => void;
  children: ComponentChildren;
  foot?: ComponentChildren;
}

/** A modal dialog; the browser keeps the focus in it, and it goes back to where it came from. */
export function Dialog({ title, kind = "box", whenClosed, children, foot }: DialogProps) {
  const dialog = useRef<HTMLDialogElement>(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = document.activeElement;
    element?.showModal();
    return () => {
      element?.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={dialog}
      class={`dialog dialog-${kind}`}
      aria-labelledby={id}
      onCancel={(event) => {
        event.preventDefault();
        whenClosed();
      }}
      onMouseDown={(event) => {
        if (event.target === dialog.current) whenClosed();
      }}
    >
      <div class="dialog-inner">
        <div class="dialog-head">
          <h2 id={id} tabIndex={-1} autofocus>
            {title}
          </h2>
          <Button label="Close" icon="close" kind="quiet" isIconOnly whenPressed={whenClosed} />
        </div>
        <div class="dialog-body">{children}</div>
        {foot === undefined ? null : <div class="dialog-foot">{foot}</div>}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  title: string;
  text: ComponentChildren;
  action: string;
  isDangerous?: boolean;
  whenConfirmed: () => void;
  whenClosed: () => void;
}

export function Confirm({ title, text, action, isDangerous = false, whenConfirmed, whenClosed }: ConfirmProps) {
  const confirm = () => {
    whenClosed();
    whenConfirmed();
  };
  return (
    <Dialog
      title={title}
      whenClosed={whenClosed}
      foot={
        <>
          <Button label="Cancel" whenPressed={whenClosed} />
          <Button label={action} kind={isDangerous ? "danger" : "primary"} whenPressed={confirm} />
        </>
      }
    >
      <div class="stack">{text}</div>
    </Dialog>
  );
}

export interface MenuItem {
  label: string;
  icon?: IconName;
  note?: string;
  isChecked?: boolean;
  isDisabled?: boolean;
  isDangerous?: boolean;
  choose: () => void;
}

interface MenuProps {
  label: string;
  icon: IconName;
  items: MenuItem[];
  text?: string;
  isDisabled?: boolean;
  kind?: "plain" | "quiet";
}

/** A button with a list of actions: arrows move, Escape closes. */
export function Menu({ label, icon, items, text, isDisabled = false, kind = "quiet" }: MenuProps) {
  const [isOpen, setIsOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  const id = useId();
  useEffect(() => {
    if (!isOpen) return undefined;
    box.current?.querySelector<HTMLElement>("[role^=menuitem]:not([disabled])")?.focus();
    const close = (event: Event) => {
      if (!box.current?.parentElement?.contains(event.target as Node)) setIsOpen(false);
    };
    addEventListener("pointerdown", close);
    return () => removeEventListener("pointerdown", close);
  }, [isOpen]);
  const leave = () => {
    setIsOpen(false);
    button.current?.focus();
  };
  const whenKey = (event: KeyboardEvent & { currentTarget: HTMLDivElement }) => {
    const all = [...event.currentTarget.querySelectorAll<HTMLElement>("[role^=menuitem]:not([disabled])")];
    const at = all.indexOf(document.activeElement as HTMLElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: all.length - 1 }[event.key];
    if (event.key === "Escape" || event.key === "Tab") {
      if (event.key === "Escape") event.preventDefault();
      event.stopPropagation();
      leave();
    } else if (to !== undefined) {
      event.preventDefault();
      all[(to + all.length) % all.length]?.focus();
    }
  };
  return (
    <div class="menu">
      <button
        ref={button}
        type="button"
        class={`button button-${kind}${text === undefined ? " button-icon" : ""}`}
        aria-label={label}
        aria-haspopup="menu"
        aria-expanded={isOpen}
        aria-controls={isOpen ? id : undefined}
        title={label}
        disabled={isDisabled}
        onClick={() => setIsOpen(!isOpen)}
      >
        <Icon name={icon} />
        {text === undefined ? null : <span>{text}</span>}
      </button>
      {isOpen ? (
        <div ref={box} id={id} role="menu" aria-label={label} class="menu-list" onKeyDown={whenKey}>
          {items.map((item) => (
            <button
              key={item.label}
              type="button"
              role={item.isChecked === undefined ? "menuitem" : "menuitemradio"}
              aria-checked={item.isChecked}
              class={`menu-item${item.isDangerous === true ? " is-dangerous" : ""}`}
              tabIndex={-1}
              disabled={item.isDisabled}
              onClick={() => {
                leave();
                item.choose();
              }}
            >
              {item.isChecked === true ? <Icon name="check" /> : item.icon !== undefined ? <Icon name={item.icon} /> : <span class="icon" />}
              <span>
                {item.label}
                {item.note === undefined ? null : <span class="note">{item.note}</span>}
              </span>
            </button>
          ))}
        </div>
      ) : null}
    </div>
  );
}
