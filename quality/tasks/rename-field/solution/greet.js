const { load } = require("./records");

const greetings = (text) => load(text).map((record) => `Hello ${record.userName}`);

module.exports = { greetings };
