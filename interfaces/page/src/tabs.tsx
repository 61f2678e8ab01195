// The strip of tabs. Arrows choose, Delete closes, F2 renames, Control+Shift+arrows move; the menu beside it does the same.
import { useEffect, useRef, useState } from "preact/hooks";
import { closeTab, moveTab, openTab, renameTab, reopenTab } from "./actions";
import { Icon } from "../../../web/common/icons";
import { Button, Confirm, Dialog, Menu, TextField } from "../../../web/common/parts";
import { update } from "./store";
import type { Studio } from "./store";
import type { Tab } from "./types";

type Asking = { kind: "close" | "rename"; tab: Tab } | undefined;

export function TabStrip({ studio }: { studio: Studio }) {
  const [asking, setAsking] = useState<Asking>();
  const [dragged, setDragged] = useState<string>();
  const list = useRef<HTMLDivElement>(null);
  const { tabs, closed } = studio.told;
  const at = tabs.findIndex((tab) => tab.id === studio.active);
  const active = tabs[at];
  useEffect(() => {
    const show = () => list.current?.querySelector("[aria-selected=true]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    show();
    addEventListener("resize", show);
    return () => removeEventListener("resize", show);
  }, [studio.active, tabs.length]);
  const close = (tab: Tab) => {
    if (tab.hasWork) setAsking({ kind: "close", tab });
    else void closeTab(tab.id);
  };
  const focusTab = (index: number) => {
    const tab = tabs[(index + tabs.length) % tabs.length];
    if (tab === undefined) return;
    update({ active: tab.id });
    requestAnimationFrame(() => document.getElementById(`tab-${tab.id}`)?.focus());
  };
  const whenKey = (event: KeyboardEvent, tab: Tab, index: number) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    const handled = () => event.preventDefault();
    if (step !== undefined && event.ctrlKey && event.shiftKey) {
      handled();
      moveTab(tab.id, index + step);
      requestAnimationFrame(() => document.getElementById(`tab-${tab.id}`)?.focus());
    } else if (step !== undefined) {
      handled();
      focusTab(index + step);
    } else if (event.key === "Home" || event.key === "End") {
      handled();
      focusTab(event.key === "Home" ? 0 : tabs.length - 1);
    } else if (event.key === "Delete") {
      handled();
      close(tab);
    } else if (event.key === "F2") {
      handled();
      setAsking({ kind: "rename", tab });
    }
  };
  return (
    <div class="tabs">
      <div class="tab-list" role="tablist" aria-label="Interfaces" ref={list}>
        {tabs.map((tab, index) => (
          <button
            key={tab.id}
            type="button"
            role="tab"
            id={`tab-${tab.id}`}
            class={`tab${dragged === tab.id ? " is-dragged" : ""}`}
            aria-selected={tab.id === studio.active}
            aria-controls="workspace"
            tabIndex={tab.id === studio.active ? 0 : -1}
            title={tab.title}
            draggable
            onClick={() => update({ active: tab.id })}
            onDblClick={() => setAsking({ kind: "rename", tab })}
            onAuxClick={(event) => event.button === 1 && close(tab)}
            onKeyDown={(event) => whenKey(event, tab, index)}
            onDragStart={(event) => {
              event.dataTransfer?.setData("text/x-dragoman-tab", tab.id);
              setDragged(tab.id);
            }}
            onDragEnd={() => setDragged(undefined)}
            onDragOver={(event) => {
              if (dragged === undefined) return;
              event.preventDefault();
              if (dragged !== tab.id) moveTab(dragged, index);
            }}
          >
            <TabMark tab={tab} />
            <span class="tab-title">{tab.title}</span>
            <span
              class="tab-close"
              aria-hidden="true"
              onClick={(event) => {
                event.stopPropagation();
                close(tab);
              }}
            >
              <Icon name="close" />
            </span>
          </button>
        ))}
      </div>
      <Button label="New tab" icon="plus" kind="quiet" isIconOnly whenPressed={() => void openTab()} />
      <Menu
        label="Tab actions"
        icon="more"
        items={[
          ...(active === undefined
            ? []
            : [
                { label: "Rename tab…", icon: "text" as const, choose: () => setAsking({ kind: "rename", tab: active }) },
                { label: "Move left", isDisabled: at === 0, choose: () => moveTab(active.id, at - 1) },
                { label: "Move right", icon: "arrow" as const, isDisabled: at === tabs.length - 1, choose: () => moveTab(active.id, at + 1) },
                { label: "Close tab", icon: "close" as const, choose: () => close(active) },
              ]),
          ...closed.slice(0, 5).map((tab) => ({ label: `Reopen ${tab.title}`, icon: "undo" as const, choose: () => void reopenTab(tab.id) })),
        ]}
      />
      {asking?.kind === "close" ? (
        <Confirm
          title={`Close “${asking.tab.title}”?`}
          text={<p>It holds work. Nothing is deleted: you can reopen the tab from the tab menu, with its chat and all versions.</p>}
          action="Close tab"
          whenConfirmed={() => void closeTab(asking.tab.id)}
          whenClosed={() => setAsking(undefined)}
        />
      ) : null}
      {asking?.kind === "rename" ? <Rename tab={asking.tab} whenClosed={() => setAsking(undefined)} /> : null}
    </div>
  );
}

function TabMark({ tab }: { tab: Tab }) {
  if (tab.state === "generating" || tab.state === "customizing")
    return (
      <>
        <span class="spinner" aria-hidden="true" />
        <span class="hidden">working,</span>
      </>
    );
  if (tab.state === "error") return <span class="tab-mark tone-bad"><Icon name="warning" /></span>;
  return <span class="tab-mark"><Icon name={tab.specification === null ? "plus" : "layout"} /></span>;
}

function Rename({ tab, whenClosed }: { tab: Tab; whenClosed: () => void }) {
  const [title, setTitle] = useState(tab.title);
  const isValid = title.trim() !== "" && title.trim().length <= 100;
  return (
    <Dialog title="Rename tab" whenClosed={whenClosed}>
      <form
        class="stack"
        onSubmit={(event) => {
          event.preventDefault();
          if (!isValid) return;
          whenClosed();
          void renameTab(tab.id, title.trim());
        }}
      >
        <TextField label="Title" value={title} note="1 to 100 characters." isRequired whenChanged={setTitle} />
        <div class="row end">
          <Button label="Cancel" whenPressed={whenClosed} />
          <Button label="Rename" kind="primary" type="submit" isDisabled={!isValid} />
        </div>
      </form>
    </Dialog>
  );
}
