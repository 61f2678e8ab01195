// The icons of the page, drawn here so that nothing is loaded for them.

const PATHS = {
  plus: "M8 3v10M3 8h10",
  close: "M4 4l8 8M12 4l-8 8",
  more: "M3.5 8h.01M8 8h.01M12.5 8h.01",
  send: "M8 13V3M3.5 7.5L8 3l4.5 4.5",
  file: "M9 2H4.5A1.5 1.5 0 0 0 3 3.5v9A1.5 1.5 0 0 0 4.5 14h7a1.5 1.5 0 0 0 1.5-1.5V6zM9 2v4h4",
  link: "M6.5 9.5l3-3M7 4.5l1-1a3 3 0 0 1 4.3 4.3l-1 1M9 11.500l-1 1A3 3 0 0 1 3.700 8.200l1-1",
  text: "M3 4h10M3 8h10M3 12h6",
  history: "M2.500 8a5.500 5.500 0 1 0 1.700-4M2.500 2.500v2.700h2.700M8 5v3.200l2.200 1.300",
  plug: "M5.500 2v3M10.500 2v3M4 5h8v2.500a4 4 0 0 1-8 0zM8 11.500V14",
  key: "M9.800 9.200a3.500 3.500 0 1 0-3-3L2.500 10.500v3h3v-2h2v-2z",
  terminal: "M3.500 5l3 3-3 3M8.500 11h4",
  download: "M8 2.500v7M4.800 6.800L8 10l3.200-3.200M3 13h10",
  sun: "M8 5.200a2.800 2.800 0 1 0 0 5.600 2.800 2.800 0 0 0 0-5.600M8 1.500v1M8 13.500v1M1.500 8h1M13.500 8h1M3.400 3.400l.7.7M11.900 11.900l.7.7M12.600 3.400l-.7.7M4.100 11.900l-.7.7",
  moon: "M13 9.500A5.500 5.500 0 0 1 6.500 3a5.500 5.500 0 1 0 6.500 6.500z",
  auto: "M8 2.500a5.500 5.500 0 1 0 0 11zM8 2.500a5.500 5.500 0 0 1 0 11",
  check: "M3.500 8.500l3 3 6-7",
  warning: "M8 2.500l6 11H2zM8 7v3M8 12h.01",
  info: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 7.500V11M8 5h.01",
  clock: "M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2M8 5v3l2 1.500",
  undo: "M5.500 3L2.500 6l3 3M2.500 6H10a3.500 3.500 0 0 1 0 7H6.500",
  diff: "M8 2.500v5M5.500 5h5M5.500 12.500h5",
  reload: "M13 8a5 5 0 1 1-1.500-3.500M13 2.500V5h-2.500",
  search: "M7 2.500a4.500 4.500 0 1 0 0 9 4.500 4.500 0 0 0 0-9M10.300 10.300L13.500 13.500",
  trash: "M3 4.500h10M6.500 4.500v-2h3v2M4.500 4.500l.5 9h6l.5-9",
  chat: "M3 3.500h10v7H8l-3 2.500v-2.500H3z",
  layout: "M2.500 3h11v10h-11zM2.500 6h11M6 6v7",
  shield: "M8 2l5 2v4c0 3-2.200 5-5 6-2.800-1-5-3-5-6V4z",
  spark: "M8 2.500l1.300 3.700L13 7.500 9.300 8.800 8 12.500 6.700 8.800 3 7.500l3.700-1.300z",
  arrow: "M3 8h10M9 4l4 4-4 4",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name }: { name: IconName }) {
  return (
    <svg class="icon" viewBox="0 0 16 16" aria-hidden="true" focusable="false">
      <path d={PATHS[name]} />
    </svg>
  );
}
