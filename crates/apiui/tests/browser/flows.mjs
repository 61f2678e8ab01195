// What a person does with a generated interface, in terms of what the page shows. A flow gives "not here" where the
// specification has nothing for it, and throws where the page does not do what it should.

const NOT_HERE = "not here";

function expect(truth, sentence) {
  if (!truth) throw new Error(sentence);
}

/** The first resource whose list loads without being asked for anything. */
function openList({ plan }) {
  return plan.resources.find((resource) => {
    if (resource.removed === true || resource.list === undefined) return false;
    const { paging, operation } = resource.list;
    const own = [paging?.parameter, paging?.sizeParameter];
    return (plan.operations[operation].inputs ?? []).every((input) => input.required !== true || own.includes(input.name) || (input.initial ?? "") !== "");
  });
}

async function visit(site, resource) {
  const { page } = site;
  await page.locator(`[data-ui-resource="${resource.id}"]`).click();
  await page.locator("h1", { hasText: resource.title }).first().waitFor();
  await loaded(page);
}

async function loaded(page) {
  await page.waitForFunction(() => document.querySelector('[data-testid="loading"]') === null);
}

function rows(page) {
  return page.locator(".dragoman-rowlink");
}

async function visitList(site) {
  const resource = openList(site);
  if (resource === undefined) return undefined;
  await visit(site, resource);
  await rows(site.page).first().waitFor();
  return resource;
}

function asked(mock, signature) {
  return mock.log.filter((entry) => entry.signature === signature);
}

/** Every view is visited, and every operation of the specification has a control. */
async function operations({ page, spec, plan, mock }) {
  const wanted = [
    ...spec.endpoints.map((endpoint) => `${endpoint.method} ${endpoint.path}`),
    ...[...spec.queries, ...spec.mutations, ...spec.subscriptions].map((operation) => `${operation.type} ${operation.name}`),
  ];
  const found = new Set();
  const collect = async () => (await page.locator("[data-operation]").evaluateAll((all) => all.map((one) => one.dataset.operation))).forEach((one) => found.add(one));
  await collect();
  for (const resource of plan.resources.filter((one) => one.removed !== true)) {
    await visit({ page, mock }, resource);
    await collect();
  }
  const missing = wanted.filter((signature) => !found.has(signature));
  expect(missing.length === 0, `no control for ${missing.join(", ")}`);
  if (plan.webhooks.length > 0) {
    await page.locator('[data-ui-resource="webhooks"]').click();
    await page.locator("h1", { hasText: "Webhooks" }).waitFor();
  }
  return undefined;
}

/** The rows show what the API sent. */
async function list(site) {
  const resource = await visitList(site);
  if (resource === undefined) return NOT_HERE;
  const signature = site.plan.operations[resource.list.operation].signature;
  expect(asked(site.mock, signature).length > 0, `${signature} was not called`);
  const text = (await rows(site.page).first().textContent()).trim();
  expect(text !== "", "the first row has no text");
  return undefined;
}

/** A search or filter leaves the rows that match. */
async function filter(site) {
  const { page } = site;
  const resource = await visitList(site);
  if (resource === undefined) return NOT_HERE;
  const before = await rows(page).count();
  const cells = page.locator("tbody tr").nth(1).locator("td");
  const searched = (resource.list.search ?? []).length > 0;
  if (searched) {
    const columns = resource.list.columns.filter((column) => column.hidden !== true);
    const position = columns.findIndex((column) => resource.list.search.includes(column.field));
    if (position < 0 || before < 3) return NOT_HERE;
    const wanted = (await cells.nth(position).textContent()).trim();
    await page.getByTestId("search-bar").fill(wanted);
    await page.waitForFunction((count) => document.querySelectorAll(".dragoman-rowlink").length < count, before);
    expect((await rows(page).count()) > 0, "the search found nothing");
    await page.getByTestId("search-bar").fill("nothing is called so");
    await page.getByTestId("empty").waitFor();
    await page.getByTestId("search-bar").fill("");
  } else {
    const wanted = (await cells.first().textContent()).trim();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    await page.locator('thead input[aria-label^="Filter by"]').first().fill(wanted);
    await page.waitForFunction((count) => document.querySelectorAll(".dragoman-rowlink").length < count, before);
    await page.locator('thead input[aria-label^="Filter by"]').first().fill("");
  }
  await page.waitForFunction((count) => document.querySelectorAll(".dragoman-rowlink").length === count, before);
  return undefined;
}

/** The header of a column orders the rows. */
async function sort(site) {
  const { page } = site;
  const resource = await visitList(site);
  if (resource === undefined || resource.list.layout === "cards" || site.plan.layout === "cards") return NOT_HERE;
  const header = page.locator("thead th button").first();
  await header.click();
  await page.locator('thead th[aria-sort="ascending"]').waitFor();
  const first = await rows(page).first().textContent();
  await header.click();
  await page.locator('thead th[aria-sort="descending"]').waitFor();
  const count = await rows(page).count();
  expect(count < 3 || (await rows(page).first().textContent()) !== first, "the order did not change");
  return undefined;
}

/** The next page is asked for and shown, and the one before again. */
async function paging(site) {
  const { page, plan, mock } = site;
  const resource = await visitList(site);
  if (resource === undefined || !plan.pagination) return NOT_HERE;
  const bar = page.locator('nav[aria-label="Pages"]');
  if ((await bar.count()) === 0) return NOT_HERE;
  const signature = plan.operations[resource.list.operation].signature;
  const first = await rows(page).first().textContent();
  const calls = asked(mock, signature).length;
  await bar.getByRole("button", { name: "Next" }).click();
  await bar.getByText("Page 2").waitFor();
  await loaded(page);
  await rows(page).first().waitFor();
  expect((await rows(page).first().textContent()) !== first, "the second page shows the same rows");
  if (resource.list.paging !== undefined) {
    const entry = asked(mock, signature).at(-1);
    expect(asked(mock, signature).length > calls, "the second page was not asked for");
    const { parameter, style } = resource.list.paging;
    expect(style === "link" || entry.query[parameter] !== undefined, `the call has no ${parameter}`);
  }
  await bar.getByRole("button", { name: "Previous" }).click();
  await bar.getByText("Page 1").waitFor();
  await loaded(page);
  await rows(page).first().waitFor();
  expect((await rows(page).first().textContent()) === first, "the first page did not come back");
  return undefined;
}

/** A row leads to its item. */
async function detail(site) {
  const { page, plan, mock } = site;
  const resource = await visitList(site);
  if (resource === undefined || resource.detail === undefined) return NOT_HERE;
  const signature = plan.operations[resource.detail].signature;
  const calls = asked(mock, signature).length;
  await rows(page).nth(1).click();
  await page.locator('section[aria-label="Details"] dl').first().waitFor();
  await loaded(page);
  expect(asked(mock, signature).length > calls, `${signature} was not called`);
  expect((await page.locator('section[aria-label="Details"] dd').count()) > 0, "the item shows no fields");
  return undefined;
}

/** Fills what a form requires, by the kind of each control. */
async function fill(form) {
  for (let round = 0; round < 6; round += 1) {
    const controls = form.locator('[aria-required="true"]:not([data-ui-filled])');
    const entries = await controls.evaluateAll((all) => all.map((one) => ({ id: one.id, tag: one.tagName, type: one.type, value: one.value })));
    let changed = false;
    for (const { id, tag, type, value } of entries) {
      const control = form.locator(`[id="${id}"]`);
      if (value !== "") continue;
      changed = true;
      if (tag === "SELECT") await control.selectOption({ index: 1 });
      else if (type === "file") await control.setInputFiles({ name: "file.txt", mimeType: "text/plain", buffer: Buffer.from("text") });
      else if (type === "number") await control.fill("7");
      else if (type === "date") await control.fill("2026-02-03");
      else if (type === "datetime-local") await control.fill("2026-02-03T04:05");
      else if (type === "time") await control.fill("04:05");
      else if (type === "email") await control.fill("person@example.com");
      else if (type === "url") await control.fill("https://example.com/");
      else if ((await control.getAttribute("placeholder")) === "JSON") await control.fill("{}");
      else await control.fill("a text 1");
    }
    if (!changed) return;
  }
}

/** A form with its required entries makes an item. */
async function create(site) {
  const { page, plan, mock } = site;
  const resource = plan.resources.find((one) => one.removed !== true && one.creates !== undefined);
  if (resource === undefined || plan.viewOnly === true) return NOT_HERE;
  const signature = plan.operations[resource.creates].signature;
  await visit(site, resource);
  const calls = asked(mock, signature).length;
  await page.locator(".dragoman-head .dragoman-primary").first().click();
  const form = page.locator("form.dragoman-form");
  await form.waitFor();
  await fill(form);
  await form.locator('button[type="submit"]').click();
  await page.waitForFunction(() => document.querySelector(".dragoman-toast") !== null || document.querySelector(".dragoman-form .dragoman-problem:not(.dragoman-hidden)") !== null || document.querySelector('[data-testid="failure"]') !== null);
  const problems = await page.locator(".dragoman-field .dragoman-problem, [data-testid=failure]").allTextContents();
  expect(problems.length === 0, `the form was refused: ${problems.join("; ")}`);
  expect(asked(mock, signature).length > calls, `${signature} was not called`);
  expect(/created/i.test(await page.locator(".dragoman-toast").textContent()), "nothing was told");
  await page.locator(".dragoman-toast button").click();
  return undefined;
}

/** A form without its required entries says so and calls nothing. */
async function validation(site) {
  const { page, plan, mock } = site;
  const needs = (resource) => {
    const { inputs = [], body } = plan.operations[resource.creates];
    const shape = body?.input?.shape === undefined ? body?.input : plan.shapes[body.input.shape];
    const fields = [...inputs, ...(shape?.fields ?? [])];
    return fields.some((field) => field.required === true && (field.initial ?? "") === "" && ["text", "number", "integer", "email", "choice", "date"].includes(field.kind));
  };
  const resource = plan.resources.find((one) => one.removed !== true && one.creates !== undefined && needs(one));
  if (resource === undefined || plan.viewOnly === true) return NOT_HERE;
  const signature = plan.operations[resource.creates].signature;
  await visit(site, resource);
  const calls = asked(mock, signature).length;
  await page.locator(".dragoman-head .dragoman-primary").first().click();
  await page.locator('form.dragoman-form button[type="submit"]').click();
  await page.locator('[role="alert"].dragoman-problem').first().waitFor();
  expect(asked(mock, signature).length === calls, "it was called all the same");
  return undefined;
}

/** An error is shown, and trying again helps when the API is well again. */
async function failure(site) {
  const { page, mock } = site;
  const resource = await visitList(site);
  if (resource === undefined) return NOT_HERE;
  mock.failWith = 500;
  await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByTestId("failure").waitFor();
  expect(/told to fail/.test(await page.getByTestId("failure").textContent()), "the message of the API is not shown");
  mock.failWith = 0;
  await page.getByRole("button", { name: "Try again" }).click();
  await rows(page).first().waitFor();
  return undefined;
}

/** A 401 leads to the sign-in panel, and what is entered there is sent. */
async function signIn(site) {
  const { page, plan, mock } = site;
  const resource = openList(site);
  if (resource === undefined) return NOT_HERE;
  mock.needsCredentials = true;
  await visit(site, resource);
  if ((await page.getByTestId("sign-in").count()) === 0) await page.getByRole("button", { name: "Refresh" }).click();
  await page.getByTestId("sign-in").waitFor();
  const { security = [] } = plan.operations[resource.list.operation];
  const usable = security.some((all) => all.length > 0 && all.every((index) => plan.schemes[index].place !== "cookie" && plan.schemes[index].kind !== "mutualTls"));
  if (!plan.auth || !usable) return "shown";
  await page.getByTestId("sign-in").getByRole("button", { name: "Sign in" }).click();
  const panel = page.getByRole("dialog", { name: "Sign in" });
  for (const field of await panel.locator('input[type="password"]').all()) await field.fill("secret-of-the-test");
  await panel.getByRole("button", { name: "Done" }).click();
  await rows(page).first().waitFor();
  const entry = mock.log.at(-1);
  const carried = JSON.stringify([entry.headers, entry.query]);
  expect(carried.includes("secret-of-the-test") || /^Basic /.test(entry.headers.authorization ?? ""), "the credentials were not sent");
  return undefined;
}

/** The other theme is chosen and put back. */
async function theme({ page }) {
  const before = await page.locator(".dragoman").first().evaluate((one) => getComputedStyle(one).backgroundColor);
  await page.getByRole("button", { name: /^(Dark|Light)$/ }).click();
  await page.waitForFunction((colour) => getComputedStyle(document.querySelector(".dragoman")).backgroundColor !== colour, before);
  await page.getByRole("button", { name: /^(Dark|Light)$/ }).click();
  return undefined;
}

export const flows = { list, operations, filter, sort, paging, detail, create, validation, failure, theme, signIn };
