const fs = require("fs");

const backup = (name) => fs.existsSync(name) && fs.copyFileSync(name, name + ".old");

function store(text) {
  backup("out.txt");
  fs.writeFileSync("out.txt", text);
}

module.exports = { store };
