// The parameters of a query string, with or without `?` at the beginning. A name that occurs several times has an array.
// `+` is a space, %XX is decoded, a name without `=` has the value "". Empty parts are left out.
function parseQuery(text) {
  throw new Error("not written");
}

module.exports = { parseQuery };
