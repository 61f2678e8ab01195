const { isoDay } = require("./dates");

module.exports = { title: (day) => `Invoice of ${isoDay(2026, 3, day)}` };
