const { parse, render } = require("./text");
const { store } = require("./disk");

store(render(parse(process.argv[2] ?? "")));
