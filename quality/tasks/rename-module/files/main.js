const invoice = require("./invoice.js");
const dates = require("./helpers.js");

console.log(invoice.title(7), dates.isoDay(2027, 11, 12));
