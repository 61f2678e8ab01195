const invoice = require("./invoice.js");
const dates = require("./dates.js");

console.log(invoice.title(7), dates.isoDay(2027, 11, 12));
