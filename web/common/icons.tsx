// The icons of the page, drawn here so that nothing is loaded for them.

const PATHS = {
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  more: "M3.2 8h.6M7.7 8h.6M12.2 8h.6",
  send: "M8 13V3M3.5 7.5L8 3l4.5 4.5",
  file: "M9 2H4.5A1.5 1.5 0 0 0 3 3.5v9A1.5 1.5 0 0 0 4.5 14h7a1.5 1.5 0 0 0 1.5-1.5V6zM9 2v4h4",
  link: "M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.3 4.3l-1 1M9 11.5l-1 1A3 3 0 0 1 3.7 8.2l1-1",
  text: "M3 4h10M3 8h10M3 12h6",
  history: "M2.5 8a5.5 5.5 0 1 0 1.7-4M2.5 2.5v2.7h2.7M8 5v3.2l2.2 1.3",
  plug: "M5.5 2v3M10.5 2v3M4 5h8v2.5a4 4 0 0 1-8 0zM8 11.5V14",
  key: "M9.8 9.2a3.5 3.5 0 1 0-3-3L2.5 10.5v3h3v-2h2v-2z",
  terminal: "M3.5 5l3 3-3 3M8.5 11h4",
  download: "M8 2.5v7M4.8 6.8L8 10l3.2-3.2M3 13h10",
  sun: "M8 5.2a2.8 2.8 0 1 0 0 5.6 2.8 2.8 0 0 0 0-5.6M8 1.5v1M8 13.5v1M1.5 8h1M13.5 8h1M3.4 3.4l.7.7M11.9 11.9l.7.7M12.6 3.4l-.7.7M4.1 11.9l-.7.7",
  moon: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  auto: "M8 2.5a5.5 5.5 0 1 0 0 11zM8 2.5a5.5 5.5 0 0 1 0 11",
  check: "M3.5 8.5l3 3 6-7",
  warning: "M8 2.5l6 11H2zM8 7v3M8 12h.01",
  info: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 7.5V11M8 5h.01",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 5v3l2 1.5",
  undo: "M5.5 3L2.5 6l3 3M2.5 6H10a3.5 3.5 0 0 1 0 7H6.5",
  diff: "M8 2.5v5M5.5 5h5M5.5 12.5h5",
  reload: "M13 8a5 5 0 1 1-1.5-3.5M13 2.5V5h-2.5",
  search: "M7 2.5a4.5 4.5 0 1 0 0 9 4.5 4.5 0 0 0 0-9M10.3 10.3L13.5 13.5",
  trash: "M3 4.5h10M6.5 4.5v-2h3v2M4.5 4.5l.5 9h6l.5-9",
  chat: "M3 3.5h10v7H8l-3 2.5v-2.5H3z",
  layout: "M2.5 3h11v10h-11zM2.5 6h11M6 6v7",
  shield: "M8 2l5 2v4c0 3-2.2 5-5 6-2.8-1-5-3-5-6V4z",
  spark: "M8 2.5l1.3 3.7L13 7.5 9.3 8.8 8 12.5 6.7 8.8 3 7.5l3.7-1.3z",
  arrow: "M3 8h10M9 4l4 4-4 4",
  back: "M13 8H3M7 4L3 8l4 4",
  stop: "M4.5 4.5h7v7h-7z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
