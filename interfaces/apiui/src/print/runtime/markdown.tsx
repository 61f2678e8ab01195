// ---- Markdown: descriptions of the specification as text, lists, code and links ----

import { safeUrl } from "./vetted";

/** One kind of block, and its lines. */
export interface Block {
  kind: "text" | "heading" | "list" | "code";
  lines: string[];
}

export function Markdown({ text }: { text: string }) {
  return (
    <div className="dragoman-markdown" dir="auto">
      {blocksOf(text).map((block, index) => (
        <MarkdownBlock key={index} block={block} />
      ))}
    </div>
  );
}

export function blocksOf(text: string): Block[] {
  const blocks: Block[] = [];
  let isCode = false;
  const add = (kind: Block["kind"], line: string) => {
    const last = blocks.at(-1);
    if (last?.kind === kind && kind !== "heading" && last.lines.at(-1) !== "") last.lines.push(line);
    else blocks.push({ kind, lines: [line] });
  };
  for (const line of text.split("\n")) {
    if (/^\s*(```|~~~)/.test(line)) {
      isCode = !isCode;
      if (isCode) blocks.push({ kind: "code", lines: [] });
    } else if (isCode) blocks.at(-1)!.lines.push(line);
    else if (/^#{1,6}\s/.test(line)) add("heading", line.replace(/^#+\s+/, ""));
    else if (/^\s*([-*+]|[0-9]+[.)])\s/.test(line)) add("list", line.replace(/^\s*\S+\s+/, ""));
    else if (line.trim() === "") blocks.push({ kind: "text", lines: [""] });
    else if (blocks.at(-1)?.kind === "list" && /^\s/.test(line)) {
      const { lines } = blocks.at(-1)!;
      lines.push(`${lines.pop()} ${line.trim()}`);
    } else add("text", line.trim());
  }
  return blocks.filter((block) => block.lines.some((line) => line.trim() !== ""));
}

export function MarkdownBlock({ block }: { block: Block }) {
  if (block.kind === "code") return <pre className="dragoman-raw dragoman-code">{block.lines.join("\n")}</pre>;
  if (block.kind === "list")
    return (
      <ul>
        {block.lines.map((line, index) => (
          <li key={index}>
            <Inline text={line} />
          </li>
        ))}
      </ul>
    );
  const text = block.lines.join(" ");
  return <p>{block.kind === "heading" ? <strong>{text.replaceAll("*", "")}</strong> : <Inline text={text} />}</p>;
}

export const INLINE =
  /(`[^`]+`|\*\*[^*]+\*\*|__[^_]+__|\*[^*\s][^*]*\*|\[[^\]]*\]\([^)\s]*\)|<https?:\/\/[^>\s]+>|https?:\/\/[^\s)>\]]+[^\s)>\].,;:!?])/;

/** Code, emphasis and links within a line. */
export function Inline({ text }: { text: string }) {
  return text.split(INLINE).map((part, index) => <InlinePart key={index} part={part} />);
}

export function InlinePart({ part }: { part: string }) {
  if (/^`[^`]+`$/.test(part)) return <code className="dragoman-code">{part.slice(1, -1)}</code>;
  if (/^(\*\*|__).+(\*\*|__)$/.test(part)) return <strong>{part.slice(2, -2)}</strong>;
  if (/^\*[^*]+\*$/.test(part)) return <em>{part.slice(1, -1)}</em>;
  const link = /^\[([^\]]*)\]\(([^)\s]*)\)$/.exec(part);
  const address = link === null ? /^<?(https?:\/\/[^>]+)>?$/.exec(part)?.at(1) : link.at(2);
  if (address === undefined) return part;
  const shown = link?.at(1) || address;
  if (safeUrl(address) === undefined) return shown;
  return (
    <a href={safeUrl(address)} target="_blank" rel="noopener noreferrer">
      {shown}
    </a>
  );
}
