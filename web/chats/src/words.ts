// Numbers, times and places as text.

export function timeText(time: number): string {
  const date = new Date(time);
  const isToday = date.toDateString() === new Date().toDateString();
  return isToday ? date.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }) : date.toLocaleDateString([], { day: "numeric", month: "short", year: "numeric" });
}

export const costText = (cost: number | null | undefined): string => (cost === null || cost === undefined ? "cost unknown" : `$${cost.toFixed(cost < 1 ? 4 : 2)}`);

export function countText(count: number): string {
  if (count < 1000) return String(count);
  return count < 1_000_000 ? `${(count / 1000).toFixed(count < 10_000 ? 1 : 0)}k` : `${(count / 1_000_000).toFixed(1)}M`;
}

export function durationText(millis: number): string {
  if (millis < 1000) return `${millis} ms`;
  return millis < 60_000 ? `${(millis / 1000).toFixed(1)} s` : `${Math.round(millis / 60_000)} min`;
}

/** The last two parts of a path. */
export const folderText = (folder: string | undefined): string => (folder === undefined ? "" : folder.split(/[\\/]/).filter(Boolean).slice(-2).join("/"));
