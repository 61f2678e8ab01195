// React, as the script before this one has brought it: the same that exported pages have, so that the program holds it once.
// Only what the frame uses of it has a type here: the types of React's own are not among the packages.

interface Given {
  react: {
    createElement(type: unknown, props: object, ...children: unknown[]): unknown;
    useEffect(effect: () => void | (() => void), dependencies: unknown[]): void;
    useState<T>(): [T | undefined, (next: T) => void];
  };
  runtime: {
    jsx(type: unknown, props: object, ...rest: unknown[]): unknown;
    jsxs(type: unknown, props: object, ...rest: unknown[]): unknown;
  };
  createRoot(element: Element, options: object): { render(element: unknown): void; unmount(): void };
}

const place = globalThis as { dragomanReact?: Given };

export const { react, runtime, createRoot } = place.dragomanReact as Given;

// An interface gets it by the frame, with the nonce for its style sheets.
delete place.dragomanReact;
