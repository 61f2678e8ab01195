// ---- Files: what an answer holds that is not JSON ----

import { DataTable } from "./data";
import { Button } from "./parts";
import { jsonOf, labelOf } from "./values";
import { exactJsonText, ownEntries } from "./vetted";
import type { CallState, Data, Ui } from "./types";

export function headerOf(state: CallState, wanted: string) {
  const found = ownEntries(state.headers).find(([name]) => name.toLowerCase() === wanted);
  return found === undefined ? "" : String(found[1]);
}

/** The name that the API gives a file, or one made of its address. */
export function fileName(state: CallState, contentType: string) {
  const given = /filename\*?=(?:UTF-8'')?"?([^";]+)/i.exec(headerOf(state, "content-disposition"))?.at(1);
  if (given !== undefined) return given.split(/[\\/]/).at(-1) ?? given;
  const last =
    (state.sent?.path ?? "")
      .split("/")
      .filter((part) => part !== "")
      .at(-1) ?? "answer";
  const ending = contentType.split(";")[0].split("/").at(-1)?.split("+").at(-1) ?? "";
  const known = ending === "plain" ? "txt" : ending === "octet-stream" ? "bin" : ending === "jpeg" ? "jpg" : ending;
  return /\.[a-z0-9]{1,5}$/i.test(last) || known === "" ? last : `${last}.${known}`;
}

/** Text with separators as rows; fields may be quoted and hold line breaks. */
export function rowsOfCsv(text: string): string[][] {
  const head = text.slice(0, 2000).split("\n")[0];
  const separator = [",", ";", "\t"].toSorted((a, b) => head.split(b).length - head.split(a).length)[0];
  const rows: string[][] = [[]];
  let field = "";
  let isQuoted = false;
  for (let at = 0; at < text.length; at += 1) {
    const c = text.charAt(at);
    if (isQuoted && c === '"' && text.charAt(at + 1) === '"') {
      field += '"';
      at += 1;
    } else if (c === '"') isQuoted = !isQuoted;
    else if (!isQuoted && (c === separator || c === "\n")) {
      rows.at(-1)!.push(field);
      field = "";
      if (c === "\n") rows.push([]);
    } else if (isQuoted || c !== "\r") field += c;
  }
  rows.at(-1)!.push(field);
  return rows.filter((row) => row.length > 1 || row[0] !== "");
}

export function CsvTable({ text }: { text: string }) {
  const [names, ...rows] = rowsOfCsv(text);
  const titles = (names ?? []).map((name, index) => (name === "" ? `Column ${index + 1}` : name));
  return (
    <DataTable
      rows={rows.map((row) => Object.fromEntries(titles.map((name, at) => [name, row.at(at) ?? ""])))}
      depth={0}
    />
  );
}

/** Rows as text with commas; what a spreadsheet would take for a formula is quoted as text. */
export function csvOf(names: string[], rows: string[][]) {
  const cell = (text: string) => {
    const plain = /^[=+@\t\r]|^-[^0-9.]/.test(text) ? `'${text}` : text;
    return /[",\r\n]/.test(plain) ? `"${plain.replaceAll('"', '""')}"` : plain;
  };
  return [names.map(labelOf), ...rows].map((row) => row.map(cell).join(",")).join("\r\n");
}

/** A file or text of an answer: an image is shown, rows are a table, and everything can be saved. */
export function FileView({ ui, state }: { ui: Ui; state: CallState }) {
  const value: Data = state.result;
  const type = headerOf(state, "content-type").toLowerCase();
  const isImage = type.startsWith("image/");
  return (
    <div className="dragoman-file">
      {isImage && ui.tools.showImage !== undefined ? ui.tools.showImage(value, type) : null}
      {typeof value === "string" && /csv|tab-separated/.test(type) ? (
        <CsvTable text={value} />
      ) : typeof value === "string" && !isImage ? (
        <pre className="dragoman-raw dragoman-code" dir="auto" tabIndex={0}>
          {value}
        </pre>
      ) : (
        <span>{jsonOf(value)}</span>
      )}
      <SaveButton ui={ui} state={state} />
    </div>
  );
}

export function SaveButton({ ui, state }: { ui: Ui; state: CallState }) {
  const { saveFile } = ui.tools;
  const value: Data = state.result;
  const type = headerOf(state, "content-type");
  const content = value instanceof Blob || typeof value === "string" ? value : exactJsonText(value, 2);
  if (saveFile === undefined) return null;
  return (
    <Button
      label="Save as a file"
      kind="quiet"
      isSmall
      whenPressed={() => saveFile(content, fileName(state, type), type)}
    />
  );
}

/** Whether an answer is a file or a text of some length, and not data. */
export function isFile(state: CallState) {
  const value: Data = state.result;
  if (value instanceof Blob) return true;
  return (
    typeof value === "string" &&
    (value.length > 200 || /csv|xml|tab-separated|image/.test(headerOf(state, "content-type")))
  );
}
