// ---- Navigation and notices ----

import { useEffect, useId, useState } from "react";
import { PLAN } from "../plan";
import { searchTexts } from "./palette";
import type { Page, Ui } from "./types";

export function Navigation({ ui, page, isShown }: { ui: Ui; page: Page; isShown: boolean }) {
  const [text, setText] = useState("");
  const id = useId();
  const wanted = text.trim().toLowerCase();
  const resources = PLAN.resources.filter(
    (resource) =>
      resource.removed !== true &&
      (wanted === "" || searchTexts(resource).some((text) => text.toLowerCase().includes(wanted))),
  );
  const groups = [...new Set(resources.map((resource) => resource.group ?? ""))];
  const isGrouped = groups.length > 1;
  return (
    <nav className={isShown ? "dragoman-side dragoman-side-shown" : "dragoman-side"} aria-label="Resources">
      <div className="dragoman-field" role="search" aria-label="Resources and operations">
        <label className="dragoman-hidden" htmlFor={id}>
          Search resources and operations
        </label>
        <input
          id={id}
          type="search"
          className="dragoman-input"
          placeholder="Search…"
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
      </div>
      {groups.map((group) => (
        <div key={group} className="dragoman-navgroup">
          {isGrouped ? <h2>{group === "" ? "Other" : group}</h2> : null}
          <ul>
            {resources
              .filter((resource) => (resource.group ?? "") === group)
              .map((resource) => (
                <li key={resource.id}>
                  <button
                    type="button"
                    className="dragoman-navitem"
                    aria-current={page.resource === resource.id ? "page" : undefined}
                    data-ui-resource={resource.id}
                    onClick={() => ui.choose({ kind: "resource", resource: resource.id })}
                  >
                    <span>{resource.title}</span>
                    <span className="dragoman-count">{resource.operations.length}</span>
                  </button>
                </li>
              ))}
          </ul>
        </div>
      ))}
      {PLAN.webhooks.length > 0 ? (
        <div className="dragoman-navgroup">
          <button
            type="button"
            className="dragoman-navitem"
            aria-current={page.kind === "incoming" ? "page" : undefined}
            data-ui-resource="webhooks"
            onClick={() => ui.choose({ kind: "incoming" })}
          >
            <span>Webhooks</span>
            <span className="dragoman-count">{PLAN.webhooks.length}</span>
          </button>
        </div>
      ) : null}
      {resources.length === 0 ? <p className="dragoman-hint">Nothing is called so.</p> : null}
    </nav>
  );
}

export function Notice({ text, whenClosed }: { text: string; whenClosed: () => void }) {
  useEffect(() => {
    if (text === "") return undefined;
    const timer = setTimeout(() => whenClosed(), 6000);
    return () => clearTimeout(timer);
  }, [text]);
  if (text === "") return <div role="status" aria-live="polite" className="dragoman-hidden" />;
  return (
    <div role="status" aria-live="polite" className="dragoman-toast">
      <span>{text}</span>
      <button type="button" onClick={() => whenClosed()}>
        Close
      </button>
    </div>
  );
}
