// The state of a page: one object, changed by `update`, read by a hook. Knows no component.
import { useEffect, useState } from "preact/hooks";
import type { Problem } from "./problem";

export interface Notice {
  id: number;
  tone: "info" | "bad";
  text: string;
}

export interface WithNotices {
  notices: Notice[];
}

/** Holds the state of a page. */
export function stateOf<S extends WithNotices>(first: S) {
  let state = first;
  let isPlanned = false;
  let noticeCount = 0;
  const listeners = new Set<() => void>();

  const current = () => state;

  /** Changes the state; the components are told once for all changes of a moment. */
  function update(change: Partial<S> | ((before: S) => Partial<S>)) {
    state = { ...state, ...(typeof change === "function" ? change(state) : change) };
    if (isPlanned) return;
    isPlanned = true;
    queueMicrotask(() => {
      isPlanned = false;
      for (const listener of listeners) listener();
    });
  }

  function subscribe(listener: () => void): () => void {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  }

  function useCurrent(): S {
    const [seen, setSeen] = useState(state);
    useEffect(() => {
      const listener = () => setSeen(state);
      // What changed before this was subscribed counts too.
      listener();
      return subscribe(listener);
    }, []);
    return seen;
  }

  function setNotices(change: (before: Notice[]) => Notice[]) {
    update((before) => ({ notices: change(before.notices) }) as Partial<S>);
  }

  /** A short text at the edge of the page, which goes away by itself; problems stay longer. */
  function tell(text: string, tone: Notice["tone"] = "info") {
    noticeCount += 1;
    const id = noticeCount;
    setNotices((before) => [...before.slice(-3), { id, tone, text }]);
    setTimeout(() => closeNotice(id), tone === "bad" ? 12_000 : 5000);
  }

  function closeNotice(id: number) {
    setNotices((before) => before.filter((notice) => notice.id !== id));
  }

  function tellProblem({ message, hint }: Problem) {
    tell(hint === undefined || hint === null ? message : `${message} ${hint}`, "bad");
  }

  return { current, update, subscribe, useCurrent, tell, closeNotice, tellProblem };
}
