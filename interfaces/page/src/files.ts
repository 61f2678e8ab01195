// Files to and from the reader's machine.

export function saveBlob(blob: Blob, name: string) {
  const address = URL.createObjectURL(blob);
  const link = Object.assign(document.createElement("a"), { href: address, download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

/** Opens the browser's dialog and gives the chosen file; undefined where none was chosen. */
export function chooseFile(): Promise<File | undefined> {
  const input = Object.assign(document.createElement("input"), { type: "file", accept: ".json,.yaml,.yml,.graphql,.graphqls,.gql,.txt" });
  return new Promise((resolve) => {
    input.addEventListener("change", () => resolve(input.files?.[0]));
    input.addEventListener("cancel", () => resolve(undefined));
    input.click();
  });
}

export function sizeText(bytes: number) {
  if (bytes < 1000) return `${bytes} B`;
  if (bytes < 1_000_000) return `${(bytes / 1000).toFixed(bytes < 10_000 ? 1 : 0)} kB`;
  return `${(bytes / 1_000_000).toFixed(1)} MB`;
}

const DAY = 86_400_000;

export function timeText(time: number, now = Date.now()) {
  const date = new Date(time);
  const clock = date.toLocaleTimeString(undefined, { hour: "2-digit", minute: "2-digit" });
  return now - time < DAY && new Date(now).getDate() === date.getDate()
    ? clock
    : `${date.toLocaleDateString(undefined, { day: "numeric", month: "short" })}, ${clock}`;
}
