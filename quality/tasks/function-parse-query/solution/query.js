const decode = (text) => decodeURIComponent(text.replace(/\+/g, " "));

function parseQuery(text) {
  const found = {};
  for (const part of text.replace(/^\?/, "").split("&").filter(Boolean)) {
    const at = part.indexOf("=");
    const name = decode(at < 0 ? part : part.slice(0, at));
    const value = at < 0 ? "" : decode(part.slice(at + 1));
    found[name] = name in found ? [].concat(found[name], value) : value;
  }
  return found;
}

module.exports = { parseQuery };
