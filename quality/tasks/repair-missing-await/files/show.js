const { total } = require("./prices");

total(process.argv.slice(2)).then((sum) => console.log(sum));
