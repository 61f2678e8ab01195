const test = require("node:test");
const assert = require("node:assert");
const { format } = require("./money");

test("amounts", () => {
  const cases = { 0: "0.00", 5: "0.05", 99: "0.99", 123456: "1,234.56", 123456789: "1,234,567.89", "-150": "-1.50", "-5": "-0.05" };
  for (const [cents, wanted] of Object.entries(cases)) assert.equal(format(Number(cents)), wanted);
});
