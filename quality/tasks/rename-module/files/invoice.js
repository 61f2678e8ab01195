const { isoDay } = require("./helpers");

module.exports = { title: (day) => `Invoice of ${isoDay(2026, 3, day)}` };
