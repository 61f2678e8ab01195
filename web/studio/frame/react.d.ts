// What the frame uses of React. The types of React's own are not among the packages.
declare module "react" {
  export function createElement(type: unknown, props: object, ...children: unknown[]): unknown;
  export function useEffect(effect: () => void | (() => void), dependencies: unknown[]): void;
  export function useState<T>(): [T | undefined, (next: T) => void];
}
declare module "react/jsx-runtime" {
  export function jsx(type: unknown, props: object, ...rest: unknown[]): unknown;
  export function jsxs(type: unknown, props: object, ...rest: unknown[]): unknown;
}
declare module "react-dom/client" {
  export function createRoot(element: Element, options: object): { render(element: unknown): void; unmount(): void };
}
