const clean = (text) => text.trim();
const escape = (text) => text.replace(/</g, "&lt;");
const unquote = (text) => text.replace(/^"|"$/g, "");
const parse = (text) => clean(text).split(",");
const render = (parts) => parts.map(escape).join("\n");

module.exports = { parse, render, unquote };
