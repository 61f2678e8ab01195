// ---- A panel over the page ----

import { useEffect, useRef } from "react";
import type { ReactNode } from "react";
import { Button } from "./parts";

/** Stands for the server that the reader chose; the page keeps its address. */
export const CHOSEN_SERVER = -1;

/** A panel over the page. It keeps the focus until it is closed. */
export function Dialog({
  title,
  whenClosed,
  children,
}: {
  title: string;
  whenClosed: () => void;
  children?: ReactNode;
}) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    heading.current?.focus();
  }, []);
  return (
    <div className="dragoman-veil">
      <div
        className="dragoman-drawer"
        role="dialog"
        aria-modal="true"
        aria-label={title}
        onKeyDown={(event) => {
          if (event.key === "Escape") whenClosed();
        }}
      >
        <span tabIndex={0} onFocus={() => heading.current?.focus()} />
        <div className="dragoman-row">
          <h2 className="dragoman-grow" tabIndex={-1} ref={heading}>
            {title}
          </h2>
          <Button label="Close" isSmall whenPressed={() => whenClosed()} />
        </div>
        {children}
        <span tabIndex={0} onFocus={() => heading.current?.focus()} />
      </div>
    </div>
  );
}
