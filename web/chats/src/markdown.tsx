// Markdown of models as elements: headings, lists, quotes, tables, code, links. No HTML of the text is ever used as HTML.
import type { ComponentChildren } from "preact";

/** The text as blocks. */
export function Markdown({ text }: { text: string }) {
  return <div class="markdown">{blocks(text.split("\n"))}</div>;
}

function blocks(lines: string[]): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let at = 0;
  const take = (fits: (line: string) => boolean) => {
    const from = at;
    while (at < lines.length && fits(lines[at] ?? "")) at += 1;
    return lines.slice(from, at);
  };
  while (at < lines.length) {
    const line = lines[at] ?? "";
    const fence = /^\s*(`{3,}|~{3,})\s*(\S*)/.exec(line);
    const heading = /^(#{1,6})\s+(.*)$/.exec(line);
    if (fence !== null) {
      at += 1;
      const code = take((one) => !one.trim().startsWith(fence[1] ?? "```"));
      at += 1;
      out.push(<Code language={fence[2] ?? ""} text={code.join("\n")} />);
    } else if (heading !== null) {
      at += 1;
      const Tag = (heading[1] ?? "#").length < 3 ? "h3" : "h4";
      out.push(<Tag>{inline(heading[2] ?? "")}</Tag>);
    } else if (/^\s*([-*+]|\d+[.)])\s+/.test(line)) out.push(list(take((one) => /^\s*([-*+]|\d+[.)])\s+/.test(one) || /^\s{2,}\S/.test(one))));
    else if (/^\s*>/.test(line)) out.push(<blockquote>{blocks(take((one) => /^\s*>/.test(one)).map((one) => one.replace(/^\s*>\s?/, "")))}</blockquote>);
    else if (/^\s*\|.*\|\s*$/.test(line) && /^\s*\|[\s:|-]+\|\s*$/.test(lines[at + 1] ?? "")) out.push(table(take((one) => /^\s*\|.*\|\s*$/.test(one))));
    else if (/^\s*([-*_])(\s*\1){2,}\s*$/.test(line)) {
      at += 1;
      out.push(<hr />);
    } else if (line.trim() === "") at += 1;
    else {
      const paragraph = take((one) => one.trim() !== "" && !/^\s*(`{3,}|~{3,}|>|#{1,6}\s|[-*+]\s|\d+[.)]\s)/.test(one));
      if (paragraph.length === 0) {
        at += 1;
        paragraph.push(line);
      }
      out.push(<p>{inline(paragraph.join("\n"))}</p>);
    }
  }
  return out;
}

function Code({ language, text }: { language: string; text: string }) {
  return (
    <pre class="code-block" tabIndex={0} role="region" aria-label={language === "" ? "Code" : `Code in ${language}`}>
      <code>{text}</code>
    </pre>
  );
}

/** One level with the lines below each entry; an entry that is indented stands in a list of its own. */
function list(lines: string[]): ComponentChildren {
  const isNumbered = /^\s*\d/.test(lines[0] ?? "");
  const indent = /^\s*/.exec(lines[0] ?? "")?.[0].length ?? 0;
  const entries: string[][] = [];
  for (const line of lines) {
    const own = /^(\s*)([-*+]|\d+[.)])\s+(.*)$/.exec(line);
    if (own !== null && (own[1] ?? "").length <= indent + 1) entries.push([own[3] ?? ""]);
    else entries[entries.length - 1]?.push(line.slice(Math.min(indent + 2, /^\s*/.exec(line)?.[0].length ?? 0)));
  }
  const made = entries.map(([first, ...rest]) => (
    <li>
      {inline(first ?? "")}
      {rest.length === 0 ? null : blocks(rest)}
    </li>
  ));
  return isNumbered ? <ol start={Number(/\d+/.exec(lines[0] ?? "")?.[0] ?? 1)}>{made}</ol> : <ul>{made}</ul>;
}

function table(lines: string[]): ComponentChildren {
  const cells = (line: string) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const [head, , ...rows] = lines;
  return (
    <div class="table-box" tabIndex={0} role="region" aria-label="Table">
      <table>
        <thead>
          <tr>{cells(head ?? "").map((cell) => <th scope="col">{inline(cell)}</th>)}</tr>
        </thead>
        <tbody>
          {rows.map((row) => (
            <tr>{cells(row).map((cell) => <td>{inline(cell)}</td>)}</tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

const MARKS = /(`+)([\s\S]*?[^`])\1(?!`)|\*\*([^\s*](?:[\s\S]*?[^\s*])?)\*\*|(?<![\w*])[*_]([^\s*_](?:[^*_]*?[^\s*_])?)[*_](?![\w*])|\[([^\]\n]+)\]\((https?:\/\/[^\s)]+)\)|(https?:\/\/[^\s<>()"'`]+[^\s<>()"'`.,;:!?])/g;

function inline(text: string): ComponentChildren[] {
  const out: ComponentChildren[] = [];
  let from = 0;
  for (const found of text.matchAll(MARKS)) {
    if (found.index > from) out.push(text.slice(from, found.index));
    from = found.index + found[0].length;
    const [, , code, strong, soft, label, address, plain] = found;
    if (code !== undefined) out.push(<code>{code.trim()}</code>);
    else if (strong !== undefined) out.push(<strong>{inline(strong)}</strong>);
    else if (soft !== undefined) out.push(<em>{soft}</em>);
    else out.push(<Away address={address ?? plain ?? ""}>{label ?? plain}</Away>);
  }
  if (from < text.length) out.push(text.slice(from));
  return out;
}

/** A link to another site: it opens in a tab of its own and learns nothing of this page. */
export function Away({ address, children }: { address: string; children: ComponentChildren }) {
  return (
    <a href={address} target="_blank" rel="noopener noreferrer" title={address}>
      {children}
    </a>
  );
}
