const { highest } = require("./scores");

const scores = process.argv.slice(2).map(Number);
console.log(highest(scores, 3).join(" "));
