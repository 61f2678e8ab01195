import { Fragment } from "react";

function safeUrl(text) {
  const address = String(text ?? "").trim();
  if (!/^(https?:\/\/|mailto:|tel:)/i.test(address)) return undefined;
  try {
    const url = new URL(address);
    return ["http:", "https:", "mailto:", "tel:"].includes(url.protocol) ? url.href : undefined;
  } catch {
    return undefined;
  }
}

function Link({ text, label }) {
  const address = safeUrl(text);
  if (address === undefined) return <span>{label ?? text}</span>;
  return <a href={address} target="_blank" rel="noopener noreferrer">{label ?? text}</a>;
}

export default function App({ items = [] }) {
  return (
    <>
      <a href="#main-content">Skip to content</a>
      <main id="main-content">
        {items.map((item, index) => (
          <Fragment key={index}>
            <Link text={item.homepage} label={item.name} />
            <a href={item.email ? safeUrl(`mailto:${item.email}`) : undefined} target="_blank" rel="noopener">{item.email}</a>
          </Fragment>
        ))}
      </main>
    </>
  );
}
