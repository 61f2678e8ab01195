// What axe-core finds in a page.
import { expect } from "./wait.mjs";

/** Menus close, texts and themes change in the moment after what a flow did: what is found then counts if it stays. */
const SETTLED = 5_000;

/** No violation in what is shown now. `axe` is the text of axe-core, `options` are its own. */
export async function expectAccessible(page, axe, state, options = {}) {
  const end = Date.now() + SETTLED;
  let found;
  do {
    found = await violations(page, axe, options);
  } while (found.length > 0 && Date.now() < end);
  expect(found.length === 0, `axe-core in “${state}”: ${found.join("; ")}`);
}

async function violations(page, axe, options) {
  await page.evaluate(`typeof axe === "undefined" ? (() => { ${axe} })() : undefined`);
  return page.evaluate(async (options) => {
    const { violations } = await globalThis.axe.run(document, { resultTypes: ["violations"], ...options });
    return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target.join(" ")).join(", ")}`);
  }, options);
}
