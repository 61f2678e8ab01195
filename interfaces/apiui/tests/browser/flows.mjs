// What a person does with a generated interface, in terms of what the page shows. A flow gives "not here" where the
// specification has nothing for it, and throws where the page does not do what it should.

const NOT_HERE = "not here";

function expect(truth, sentence) {
  if (!truth) throw new Error(sentence);
}

/** The resources whose lists load without being asked for anything. */
function openLists({ plan }) {
  return plan.resources.filter((resource) => {
    if (resource.removed === true || resource.list === undefined) return false;
    const { paging, operation } = resource.list;
    const own = [paging?.parameter, paging?.sizeParameter];
    return (plan.operations[operation].inputs ?? []).every((input) => input.required !== true || own.includes(input.name) || (input.initial ?? "") !== "");
  });
}

/** Whether the specification says which fields identify an item. */
function hasKeys(resource) {
  return (resource.keys ?? []).length > 0 && resource.keys.every((key) => key.guessed !== true);
}

async function visit(site, resource) {
  const { page } = site;
  // By way of the overview, so that each flow begins with a view of its own.
  await page.locator(".dragoman-brand").click();
  await page.locator(`[data-ui-resource="${resource.id}"]`).click();
  const isThere = (title) => document.querySelector("h1")?.textContent === title && document.querySelector('[data-testid="loading"]') === null;
  await page.waitForFunction(isThere, resource.title);
}

async function loaded(page) {
  await page.waitForFunction(() => document.querySelector('[data-testid="loading"]') === null);
}

function rows(page) {
  return page.locator(".dragoman-rowlink");
}

/** Waits until nothing loads and the first row has this text, or another. */
async function firstRow(page, isSame, text) {
  const ready = ([isSame, text]) => {
    const row = document.querySelector(".dragoman-rowlink");
    return document.querySelector('[data-testid="loading"]') === null && row !== null && isSame === (row.textContent === text);
  };
  await page.waitForFunction(ready, [isSame, text]);
}

async function visitList(site, resource = openLists(site)[0]) {
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
  const texts = (await rows(site.page).allTextContents()).map((text) => text.trim());
  expect(texts[0] !== "", "the first row has no text");
  expect(new Set(texts).size > 1 || texts.length < 2, `each row is called “${texts[0]}”`);
  // A day is the same day wherever the page is read. The mock's first is the first of January.
  const [leading] = resource.list.columns.filter((column) => column.hidden !== true);
  expect(leading.display !== "date" || texts[0] === "Jan 1, 2026", `the first day is shown as ${texts[0]}`);
  const days = await site.page.locator("tbody tr").first().locator('time[datetime="2026-01-01"]').allTextContents();
  expect(days.every((day) => day === "Jan 1, 2026"), `the first day is shown as ${days.join(", ")}`);
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
    const wanted = (await cells.nth(position).innerText()).trim();
    await page.getByTestId("search-bar").fill(wanted);
    await page.waitForFunction((count) => document.querySelectorAll(".dragoman-rowlink").length < count, before);
    expect((await rows(page).count()) > 0, "the search found nothing");
    await page.getByTestId("search-bar").fill("nothing is called so");
    await page.getByTestId("empty").waitFor();
    await page.getByTestId("search-bar").fill("");
  } else {
    const wanted = (await cells.first().textContent()).trim();
    await page.getByRole("button", { name: "Filter", exact: true }).click();
    const input = page.locator('thead input[aria-label^="Filter by"]').first();
    await input.fill("nothing is called so");
    await page.getByTestId("empty").waitFor();
    await input.fill(wanted);
    await page.waitForFunction((count) => {
      const left = document.querySelectorAll(".dragoman-rowlink").length;
      return left > 0 && left < count;
    }, before);
    await input.fill("");
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

/** The next page is asked for and shown, and the one before again: in each list that the API pages. */
async function paging(site) {
  const lists = openLists(site);
  const paged = lists.filter((resource) => resource.list.paging !== undefined);
  const chosen = (paged.length > 0 ? paged : lists.slice(0, 1)).slice(0, 4);
  const outcomes = [];
  for (const resource of chosen) outcomes.push(await turnPages(site, resource));
  return outcomes.some((isPaged) => isPaged) ? undefined : NOT_HERE;
}

async function turnPages(site, resource) {
  const { page, plan, mock } = site;
  await visitList(site, resource);
  const bar = page.locator('nav[aria-label="Pages"]');
  if (!plan.pagination || (await bar.count()) === 0) return false;
  const signature = plan.operations[resource.list.operation].signature;
  const first = await rows(page).first().textContent();
  const calls = asked(mock, signature).length;
  await bar.getByRole("button", { name: "Next" }).click();
  await bar.getByText("Page 2").waitFor();
  await firstRow(page, false, first);
  if (resource.list.paging !== undefined) {
    const { parameter, style } = resource.list.paging;
    expect(asked(mock, signature).length > calls, "the second page was not asked for");
    expect(style === "link" || asked(mock, signature).at(-1).query[parameter] !== undefined, `the call has no ${parameter}`);
  }
  await bar.getByRole("button", { name: "Previous" }).click();
  await bar.getByText("Page 1").waitFor();
  await firstRow(page, true, first);
  await enlarge(page, bar);
  return true;
}

/** The longest page that is offered is one that the API sends. */
async function enlarge(page, bar) {
  const sizes = bar.locator("select");
  if ((await sizes.count()) === 0) return;
  const before = await rows(page).count();
  const largest = Math.max(...(await sizes.locator("option").allTextContents()).map(Number));
  if (largest <= before) return;
  await sizes.selectOption(String(largest));
  const isLonger = (count) => document.querySelector('[data-testid="failure"]') !== null || document.querySelectorAll(".dragoman-rowlink").length > count;
  await page.waitForFunction(isLonger, before);
  expect((await page.getByTestId("failure").count()) === 0, `a page of ${largest} rows was refused`);
}

/** A row leads to its item. */
async function detail(site) {
  const { page, plan, mock } = site;
  const chosen = openLists(site).filter((resource) => resource.detail !== undefined && hasKeys(resource));
  if (chosen.length === 0) return NOT_HERE;
  for (const resource of chosen.slice(0, 3)) {
    await visitList(site, resource);
    const signature = plan.operations[resource.detail].signature;
    const calls = asked(mock, signature).length;
    await rows(page).nth(1).click();
    const details = page.locator('section[aria-label="Details"]');
    await details.waitFor();
    await loaded(page);
    expect(asked(mock, signature).length > calls, `${signature} was not called`);
    // A file has no fields.
    expect((await details.locator("dd").count()) > 0 || /file of/i.test(await details.textContent()), "the item shows no fields");
  }
  return undefined;
}

/** Fills what a form requires, by the kind of each control. */
async function fill(form) {
  for (let round = 0; round < 6; round += 1) {
    const controls = form.locator('[aria-required="true"]:not([data-ui-filled])');
    const entries = await controls.evaluateAll((all) => all.map((one) => ({ id: one.id, tag: one.tagName, type: one.type, value: one.value, role: one.getAttribute("role") })));
    let changed = false;
    for (const { id, tag, type, value, role } of entries) {
      const control = form.locator(`[id="${id}"]`);
      if (value !== "") continue;
      changed = true;
      if (role === "combobox") await chooseFirst(form, control);
      else if (tag === "SELECT") await control.selectOption({ index: 1 });
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

/** Chooses the first item of a reference, or types a key where nothing can be chosen. */
async function chooseFirst(form, control) {
  await control.click();
  const option = form.locator('[role="option"]').first();
  const status = form.locator('.dragoman-combobox [role="status"]').filter({ hasText: /fits|loaded|found/ });
  await option.or(status).first().waitFor();
  if ((await option.count()) > 0) await option.dispatchEvent("mousedown");
  else {
    await control.fill("7");
    await control.press("Enter");
  }
}

/** The page has told this. */
async function told(page, word) {
  await page.waitForFunction((word) => globalThis.toldTexts.some((text) => text.includes(word)), word);
}

/** Closes what was told, unless it has gone by itself. */
async function dismiss(page) {
  await page.evaluate(() => document.querySelector(".dragoman-toast button")?.click());
  await page.locator(".dragoman-toast").waitFor({ state: "detached" });
  await page.evaluate(() => globalThis.toldTexts.splice(0));
}

/** What every call needs is asked for once at the list, and goes with the calls of its items. */
async function needs(site) {
  const { page, plan, mock } = site;
  const needed = (operation) => (operation.inputs ?? []).find((input) => input.place === "header" && input.required === true);
  const resource = plan.resources.find((one) => one.list !== undefined && one.detail !== undefined && needed(plan.operations[one.list.operation]));
  if (resource === undefined) return NOT_HERE;
  const list = plan.operations[resource.list.operation];
  const { name } = needed(list);
  await visit(site, resource);
  await page.getByTestId("empty").waitFor();
  const bar = page.locator("form.dragoman-toolbar");
  await bar.locator("input").first().fill("north");
  await bar.locator('button[type="submit"]').click();
  await rows(page).first().waitFor();
  const sent = (signature) => asked(mock, signature).at(-1)?.headers[name.toLowerCase()];
  expect(sent(list.signature) === "north", `the list was asked for with ${sent(list.signature)}`);
  await rows(page).first().click();
  await page.locator('section[aria-label="Details"] dd').first().waitFor();
  const detail = plan.operations[resource.detail].signature;
  expect(sent(detail) === "north", `the item was asked for with ${sent(detail)}`);
  return undefined;
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
  await page.waitForFunction(() => globalThis.toldTexts.length > 0 || document.querySelector('.dragoman-form .dragoman-problem:not(.dragoman-hidden), [data-testid="failure"]') !== null);
  const problems = await page.locator(".dragoman-field .dragoman-problem, [data-testid=failure]").allTextContents();
  expect(problems.length === 0, `the form was refused: ${problems.join("; ")}`);
  expect(asked(mock, signature).length > calls, `${signature} was not called`);
  await told(page, "created");
  await dismiss(page);
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

/** An operation that no list or form uses is called from its own entry, and its answer is shown. */
async function call(site) {
  const operation = await openEntry(site);
  if (operation === undefined) return NOT_HERE;
  await submitEntry(site.page);
  await site.page.getByTestId("result").waitFor();
  expect(asked(site.mock, operation.signature).length > 0, `${operation.signature} was not called`);
  return undefined;
}

/** Opens the entry of the first operation that reads something. */
async function openEntry(site) {
  const { page, plan } = site;
  const reads = (index) => plan.operations[index].writes !== true;
  const resource = plan.resources.find((one) => one.removed !== true && one.operations.some(reads));
  if (resource === undefined) return undefined;
  const operation = plan.operations[resource.operations.find(reads)];
  await visit(site, resource);
  await page.locator(".dragoman-opener").and(page.locator(`[data-operation=${JSON.stringify(operation.signature)}]`)).click();
  await page.locator("form.dragoman-form").waitFor();
  return operation;
}

async function submitEntry(page) {
  const form = page.locator("form.dragoman-form").first();
  await fill(form);
  await form.locator('button[type="submit"]').click();
}

/** An item is changed by its form, then deleted after a question. */
async function change(site) {
  const { page, plan, mock } = site;
  const can = (resource) => resource.edits !== undefined && resource.deletes !== undefined && hasKeys(resource);
  const resource = openLists(site).find(can);
  if (resource === undefined || plan.viewOnly === true) return NOT_HERE;
  const head = page.locator(".dragoman-head");
  await visitList(site, resource);
  await rows(page).nth(1).click();
  await page.locator('section[aria-label="Details"] dd').first().waitFor();
  await head.getByRole("button", { name: "Edit" }).click();
  await page.locator("form.dragoman-form").waitFor();
  if (!(await touch(page))) return NOT_HERE;
  await submitEntry(page);
  await told(page, "saved");
  expect(asked(mock, plan.operations[resource.edits].signature).length > 0, "the change was not sent");
  await page.locator('section[aria-label="Details"] dd').first().waitFor();
  await head.getByRole("button", { name: "Delete" }).click();
  const title = await page.locator("h1").textContent();
  const question = await page.getByRole("alertdialog").textContent();
  expect(question.includes(title), `the question does not name ${title}: ${question}`);
  await page.getByRole("alertdialog").getByRole("button", { name: "Delete" }).click();
  await told(page, "deleted");
  expect(asked(mock, plan.operations[resource.deletes].signature).length > 0, "the deletion was not sent");
  await dismiss(page);
  return undefined;
}

/** Changes the first text or number of a form; false where it has none. */
async function touch(page) {
  const field = page.locator('form.dragoman-form input[type="text"]:visible, form.dragoman-form textarea:not(.dragoman-code):visible, form.dragoman-form input[type="number"]:visible').first();
  if ((await field.count()) === 0) return false;
  const isNumber = (await field.getAttribute("type")) === "number";
  await field.fill(isNumber ? String(Number((await field.inputValue()) || "6") + 1) : `${await field.inputValue()}1`);
  return true;
}

/** A 401 leads to the sign-in panel, and what is entered there is sent. */
async function signIn(site) {
  const { page, plan, mock } = site;
  mock.needsCredentials = true;
  const resource = openLists(site)[0];
  const operation = resource === undefined ? await openEntry(site) : plan.operations[resource.list.operation];
  if (operation === undefined) return NOT_HERE;
  if (resource === undefined) await submitEntry(page);
  else await visit(site, resource);
  await page.getByTestId("sign-in").first().waitFor();
  const isUsable = (index) => plan.schemes[index].place !== "cookie" && plan.schemes[index].kind !== "mutualTls";
  if (!plan.auth || !(operation.security ?? []).some((all) => all.length > 0 && all.every(isUsable))) return "shown";
  await page.getByTestId("sign-in").first().getByRole("button", { name: "Sign in" }).click();
  const panel = page.getByRole("dialog", { name: "Connection" });
  await panel.waitFor();
  for (const field of await panel.locator('input[type="password"]:visible').all()) await field.fill("secret-of-the-test");
  await panel.getByRole("button", { name: "Done" }).click();
  if (resource === undefined) {
    await submitEntry(page);
    await page.getByTestId("result").waitFor();
  } else {
    await rows(page).first().waitFor();
  }
  // The API forgets who this is; signing in once more with the same words loads what failed.
  if (resource !== undefined) {
    mock.failWith = 401;
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByTestId("sign-in").first().waitFor();
    mock.failWith = 0;
    await page.getByTestId("sign-in").first().getByRole("button", { name: "Sign in" }).click();
    await panel.waitFor();
    await panel.getByRole("button", { name: "Done" }).click();
    await rows(page).first().waitFor();
  }
  const entry = asked(mock, operation.signature).at(-1);
  const carried = JSON.stringify([entry.headers, entry.query]);
  expect(carried.includes("secret-of-the-test") || /^Basic /.test(entry.headers.authorization ?? ""), "the credentials were not sent");
  return undefined;
}

/** The page's policy stops what the checker would have refused. */
async function policy(site) {
  site.mock.isAttacked = true;
  const passed = await site.page.evaluate(async () => {
    const wait = () => new Promise((done) => setTimeout(() => done(), 20));
    // A policy refuses by an exception or in silence: either way the attempt leaves no mark.
    const attempts = {
      script: () => {
        const script = document.createElement("script");
        document.body.append(script);
        script.textContent = "globalThis.mark = true";
      },
      text: () => document.body.append(Object.assign(document.createElement("script"), { text: "globalThis.mark = true" })),
      handler: () => document.body.setAttribute("onclick", "globalThis.mark = true") ?? document.body.dispatchEvent(new Event("click")),
      timer: () => setTimeout("globalThis.mark = true"),
      evaluation: () => (0, eval)("globalThis.mark = true"),
      constructor: () => Function("globalThis.mark = true")(),
      import: () => import("data:text/javascript,globalThis.mark = true"),
      elsewhere: () => fetch(location.origin.replace("127.0.0.1", "localhost"), { mode: "no-cors" }).then(() => { globalThis.mark = true; }),
      picture: () => new Promise((done) => Object.assign(new Image(), { onload: () => done((globalThis.mark = true)), onerror: done, src: location.origin.replace("127.0.0.1", "localhost") + "/picture.png" })),
    };
    const passed = [];
    // The debugger that runs this may evaluate; what comes later in the page may not.
    await wait();
    for (const [name, attempt] of Object.entries(attempts)) {
      globalThis.mark = false;
      try {
        await attempt();
        await wait();
      } catch {}
      if (globalThis.mark === true) passed.push(name);
    }
    return passed;
  });
  expect(passed.length === 0, `the policy let pass: ${passed.join(", ")}`);
  return undefined;
}

/** What the checker of accessibility finds, and whether the page is wider than a phone. */
async function look(page, axe, state) {
  await loaded(page);
  await page.evaluate(`${axe};0`);
  const found = await page.evaluate(() => globalThis.axe.run(document, { resultTypes: ["violations"], preload: false }).then((result) => result.violations.map((one) => `${one.id} (${one.nodes.length}): ${one.nodes[0].html.slice(0, 120)}`)));
  expect(found.length === 0, `${state}: ${found.join("; ")}`);
  await page.setViewportSize({ width: 375, height: 800 });
  const isWider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1);
  await page.setViewportSize({ width: 1280, height: 900 });
  expect(!isWider, `${state} is wider than a phone`);
}

async function lookAtViews(site, theme) {
  const { page, axe } = site;
  await page.locator(".dragoman-brand").click();
  await look(page, axe, `the overview${theme}`);
  const operation = await openEntry(site);
  if (operation !== undefined) await look(page, axe, `an operation${theme}`);
  if ((await visitList(site)) === undefined) return;
  await look(page, axe, `a list${theme}`);
  await rows(page).first().click();
  await page.locator('section[aria-label="Details"]').waitFor();
  await look(page, axe, `an item${theme}`);
}

/** From light to dark or back; done when the colors have changed. */
async function switchTheme(page) {
  const before = await page.locator(".dragoman").first().evaluate((one) => getComputedStyle(one).backgroundColor);
  await page.getByRole("button", { name: /^(Dark|Light)$/ }).click();
  await page.waitForFunction((color) => getComputedStyle(document.querySelector(".dragoman")).backgroundColor !== color, before);
}

/** Every state can be used by everybody: names, landmarks, contrast, and nothing is wider than a phone. */
async function access(site) {
  const { page, axe } = site;
  if (axe === undefined) return NOT_HERE;
  await switchTheme(page);
  await lookAtViews(site, ", in the other theme");
  await switchTheme(page);
  await lookAtViews(site, "");
  await page.getByRole("button", { name: "Connection" }).click();
  await page.getByRole("dialog", { name: "Connection" }).waitFor();
  await look(page, axe, "the connection panel");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Find…" }).click();
  await page.getByRole("dialog", { name: "Find" }).waitFor();
  await look(page, axe, "the palette");
  await page.keyboard.press("Escape");
  await page.getByRole("dialog").waitFor({ state: "detached" });
  return undefined;
}

/** Back, reload and links lead to the same view, and a list is as it was left. */
async function routes(site) {
  const { page } = site;
  const resource = openLists(site).find((one) => one.detail !== undefined && hasKeys(one));
  if (resource === undefined) return NOT_HERE;
  await visitList(site, resource);
  // The list may still be in the order of an earlier visit.
  const head = page.locator("thead th").first();
  for (let click = 0; click < 3 && (await head.getAttribute("aria-sort")) !== "ascending"; click += 1) await head.locator("button").click();
  await page.locator('thead th[aria-sort="ascending"]').waitFor();
  await rows(page).first().click();
  const details = page.locator('section[aria-label="Details"]');
  await details.waitFor();
  await loaded(page);
  const address = page.url();
  expect(address.includes(`#/${resource.id}/item`), `the item has the address ${address}`);
  await page.goBack();
  await page.locator('thead th[aria-sort="ascending"]').waitFor();
  await page.goForward();
  await details.waitFor();
  await page.reload();
  await details.waitFor();
  await loaded(page);
  expect(page.url() === address, `after a reload the address is ${page.url()}`);
  return undefined;
}

/** The resources with a form that creates, and a field of it that fits. */
function formFields({ plan }, fits) {
  return plan.resources.flatMap((resource) => {
    if (resource.removed === true || resource.creates === undefined || plan.viewOnly === true) return [];
    const operation = plan.operations[resource.creates];
    const shape = operation.body?.input?.shape === undefined ? operation.body?.input : plan.shapes[operation.body.input.shape];
    const fields = (shape?.fields ?? []).filter(fits);
    return operation.body?.kind === "json" && (operation.inputs ?? []).every((input) => input.required !== true) ? fields.map((field) => ({ resource, operation, field })) : [];
  });
}

async function openForm(site, resource) {
  await visit(site, resource);
  await site.page.locator(".dragoman-head .dragoman-primary").first().click();
  const form = site.page.locator("form.dragoman-form");
  await form.waitFor();
  return form;
}

/** An item is chosen by its name, and its key is sent. */
async function references(site) {
  const { page, plan, mock } = site;
  const lists = openLists(site);
  const [found] = formFields(site, (field) => field.reference !== undefined && lists.includes(plan.resources[field.reference]));
  if (found === undefined) return NOT_HERE;
  const { resource, operation, field } = found;
  const target = plan.resources[field.reference];
  const form = await openForm(site, resource);
  const control = form.locator('[role="combobox"]').first();
  await control.click();
  const option = form.locator('[role="option"]').nth(1);
  await option.waitFor();
  const [name, key] = [await option.locator("bdi").textContent(), await option.locator("code").textContent()];
  if (site.axe !== undefined) {
    await look(page, site.axe, "choices");
    await control.click();
  }
  // Typing narrows the choices, and the keyboard chooses.
  await control.fill(name);
  await page.waitForFunction((name) => [...document.querySelectorAll('[role="option"] bdi')].every((one) => one.textContent.includes(name)) && document.querySelector('[role="option"]') !== null, name);
  // A key that is pressed while the choices are loaded again chooses nothing.
  const isTaken = () => page.waitForFunction((key) => document.querySelector('[role="combobox"]').value.includes(key), key, { timeout: 3000 }).then(() => true, () => false);
  for (let tries = 0; tries < 20; tries += 1) {
    await control.press("Enter");
    if (await isTaken()) break;
  }
  expect(name === key || (await control.inputValue()).includes(name), `the control shows ${await control.inputValue()} in place of ${name}`);
  await fill(form);
  await form.locator('button[type="submit"]').click();
  await told(page, "created");
  const sent = JSON.parse(asked(mock, operation.signature).at(-1).body)[field.name];
  expect(String(sent) === key, `${field.name} of ${target.title} was sent as ${sent} in place of ${key}`);
  await dismiss(page);
  return undefined;
}

/** Labels, examples, unions, maps, distinct entries, zones: what is entered is checked and sent as the schema says. */
async function forms(site) {
  const { page, plan, mock } = site;
  if (plan.title !== "Gallery") return NOT_HERE;
  const form = await openForm(site, plan.resources.find((one) => one.id === "Pictures"));
  const group = (name) => form.getByRole("group", { name, exact: true });
  const refused = async (message) => {
    await form.locator('button[type="submit"]').click();
    await form.locator(".dragoman-field .dragoman-problem", { hasText: message }).first().waitFor();
  };
  expect((await form.getByLabel("Title *").getAttribute("placeholder")) === "The night", "the example is not shown");
  await fill(form);
  await form.getByLabel("Style", { exact: true }).selectOption({ label: "Cubism" });
  await form.getByLabel("State", { exact: true }).selectOption({ label: "In the cellar" });
  await form.getByLabel("Opens at", { exact: true }).fill("2026-02-03T04:05");
  await form.getByLabel("Time zone").selectOption({ label: "UTC" });
  await form.getByRole("button", { name: "Add frame" }).click();
  await group("Frame").getByLabel("Kind").selectOption({ label: "Metal" });
  await group("Frame").getByLabel("Metal *").fill("gold");
  await form.getByRole("button", { name: "Add tags" }).click();
  await group("Tags").getByRole("button", { name: "Add entry" }).click();
  for (const at of [0, 1]) {
    await group("Tags").getByLabel("Name *").nth(at).fill("year");
    await group("Tags").getByLabel("Value *").nth(at).fill(`164${at}`);
  }
  await refused("This name is there already.");
  await group("Tags").getByRole("button", { name: "Remove" }).nth(1).click();
  await form.getByLabel("Website", { exact: true }).fill("nonsense");
  await refused("This is not a web address.");
  await form.getByLabel("Website", { exact: true }).fill("https://example.com/night");
  await form.getByRole("button", { name: "Add room ids" }).click();
  await group("Room IDs").getByRole("button", { name: "Add entry" }).click();
  for (const at of [0, 1]) await chooseFirst(form, group("Room IDs").getByRole("combobox").nth(at));
  await refused("Two entries are the same.");
  await group("Room IDs").getByRole("button", { name: "Remove" }).nth(1).click();
  await form.locator('button[type="submit"]').click();
  await told(page, "created");
  const sent = JSON.parse(asked(mock, "POST /pictures").at(-1).body);
  const wanted = { style: 2, state: "stored", opensAt: "2026-02-03T04:05:00Z", frame: { metal: "gold" }, tags: { year: "1640" }, website: "https://example.com/night", roomIds: [1] };
  for (const [name, value] of Object.entries(wanted)) expect(JSON.stringify(sent[name]) === JSON.stringify(value), `${name} was sent as ${JSON.stringify(sent[name])}`);
  await dismiss(page);
  return undefined;
}

/** What the API says about a field stands at the field. */
async function refusal(site) {
  const { page, mock } = site;
  const [found] = formFields(site, (field) => field.kind === "text" && field.reference === undefined);
  if (found === undefined) return NOT_HERE;
  const { resource, field } = found;
  const form = await openForm(site, resource);
  await fill(form);
  for (const data of [{ errors: [{ field: field.name, message: "is taken" }] }, { detail: [{ loc: ["body", field.name], msg: "is taken" }] }, { errors: { [field.name]: ["is taken"] } }, { errors: [{ source: { pointer: `/data/attributes/${field.name}` }, detail: "is taken" }] }]) {
    mock.refusal = data;
    await form.locator('button[type="submit"]').click();
    const problem = form.locator(".dragoman-field .dragoman-problem", { hasText: "is taken" });
    await problem.waitFor();
    const label = await problem.locator("xpath=..").locator("label").first().textContent();
    expect(label.toLowerCase().replace(/[^a-z0-9]/g, "") === field.name.toLowerCase().replace(/[^a-z0-9]/g, ""), `the message for ${field.name} stands at ${label}`);
  }
  mock.refusal = { errors: [{ field: "a_field_of_nowhere", message: "is odd" }] };
  await form.locator('button[type="submit"]').click();
  await form.locator('[role="alert"]', { hasText: "is odd" }).first().waitFor();
  if (site.axe !== undefined) await look(page, site.axe, "a refused form");
  mock.refusal = undefined;
  return undefined;
}

/** Rows are chosen and deleted after a question; rows without a certain key cannot be chosen. */
async function bulk(site) {
  const { page, plan, mock } = site;
  const tables = openLists(site).filter((resource) => resource.list.layout !== "cards" && plan.layout !== "cards");
  for (const resource of tables.filter((one) => !hasKeys(one) && one.list.columns.length > 1).slice(0, 2)) {
    await visitList(site, resource);
    expect((await page.locator(".dragoman-pick").count()) === 0, `rows of ${resource.title} can be chosen without a key`);
  }
  const resource = tables.find((one) => one.deletes !== undefined && one.detail !== undefined && hasKeys(one));
  if (resource === undefined || plan.viewOnly === true) return NOT_HERE;
  const signature = plan.operations[resource.deletes].signature;
  await visitList(site, resource);
  const before = asked(mock, signature).length;
  await page.locator("tbody .dragoman-pick").nth(0).check();
  await page.locator("tbody .dragoman-pick").nth(2).check();
  const bar = page.locator('[aria-label="Selected rows"]');
  await bar.getByRole("button", { name: "Delete…" }).click();
  expect(asked(mock, signature).length === before, "rows were deleted without a question");
  if (site.axe !== undefined) await look(page, site.axe, "chosen rows");
  await bar.getByRole("button", { name: "Keep" }).click();
  await bar.getByRole("button", { name: "Delete…" }).click();
  await bar.getByRole("button", { name: "Delete 2" }).click();
  await told(page, "deleted");
  const calls = asked(mock, signature).slice(before);
  const named = calls.map((call) => JSON.stringify([call.path, call.query]));
  expect(new Set(named).size === 2, `called ${named.join(", ")}`);
  await dismiss(page);
  return undefined;
}

/** A number over time is drawn. */
async function chart(site) {
  const { page } = site;
  for (const resource of openLists(site)) {
    await visitList(site, resource);
    const button = page.getByRole("button", { name: "Chart", exact: true });
    if ((await button.count()) === 0) continue;
    await button.click();
    await page.locator('[data-testid="chart"] polyline').waitFor();
    const points = await page.locator('[data-testid="chart"] polyline').getAttribute("points");
    expect(points.split(" ").length > 1 && !/NaN|Infinity/.test(points), `the line is ${points}`);
    if (site.axe !== undefined) await look(page, site.axe, "a chart");
    await button.click();
    return undefined;
  }
  return NOT_HERE;
}

/** The request as a command and as code; the answer formatted, as a tree and raw; files, rows and events as what they are. */
async function answers(site) {
  const { page, plan } = site;
  const operation = await openEntry(site);
  if (operation === undefined) return NOT_HERE;
  const form = page.locator("form.dragoman-form").first();
  const told = (operation.answers ?? []).find((answer) => answer.shape?.startsWith("{"));
  if (told !== undefined) {
    await page.locator(".dragoman-operation summary", { hasText: /^Answers$/ }).first().click();
    const shown = await page.locator(".dragoman-operation .dragoman-notes pre").first().textContent();
    expect(shown === told.shape, `the answer is described as ${shown}`);
    if (site.axe !== undefined) await look(page, site.axe, "the answers of an operation");
  }
  await form.getByText("As a command or code").click();
  await form.getByTestId("snippet").filter({ hasText: `curl -X ${operation.method}` }).waitFor();
  await form.getByRole("button", { name: "Show fetch" }).click();
  await form.getByTestId("snippet").filter({ hasText: "await fetch(" }).waitFor();
  await submitEntry(page);
  const result = page.getByTestId("result").first();
  await result.or(page.getByTestId("stream")).first().waitFor();
  if ((await result.getByRole("button", { name: "Tree" }).count()) > 0) {
    await result.getByRole("button", { name: "Tree" }).click();
    await result.locator(".dragoman-tree").waitFor();
    if (site.axe !== undefined) await look(page, site.axe, "a tree");
    await result.getByRole("button", { name: "Raw" }).click();
    await result.locator("pre").first().waitFor();
  }
  if (plan.title === "Gallery") await kindsOfAnswers(site);
  await subscription(site);
  return undefined;
}

/** A subscription shows what it asked for as it comes, until it is stopped. */
async function subscription(site) {
  const { page, plan } = site;
  const number = plan.operations.findIndex((one) => one.signature.startsWith("subscription "));
  const resource = plan.resources.find((one) => (one.operations ?? []).includes(number));
  expect(number < 0 || resource !== undefined, "a subscription has no place");
  if (number < 0) return;
  const { signature, result } = plan.operations[number];
  await visit(site, resource);
  await page.locator(".dragoman-opener").and(page.locator(`[data-operation=${JSON.stringify(signature)}]`)).click();
  await submitEntry(page);
  await page.locator('[data-testid="stream"] li').nth(1).waitFor();
  const shown = await page.locator('[data-testid="stream"]').textContent();
  expect(!shown.includes(result.at(-1)), `an event is shown with its envelope: ${shown}`);
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Ended").waitFor();
}

async function kindsOfAnswers(site) {
  const { page, plan } = site;
  const open = async (signature) => {
    const number = plan.operations.findIndex((one) => one.signature === signature);
    await visit(site, plan.resources.find((one) => one.operations.includes(number)));
    await page.locator(".dragoman-opener").and(page.locator(`[data-operation=${JSON.stringify(signature)}]`)).click();
    await submitEntry(page);
  };
  await open("GET /pictures/{pictureId}/image");
  await page.locator('[data-testid="result"] img').waitFor();
  const width = await page.locator('[data-testid="result"] img').evaluate((image) => image.decode().then(() => image.naturalWidth));
  expect(width === 1, "the image is not shown");
  const saved = page.waitForEvent("download");
  await page.getByTestId("result").getByRole("button", { name: "Save as a file" }).click();
  expect((await saved).suggestedFilename() === "image.png", `saved as ${(await saved).suggestedFilename()}`);
  await open("GET /report");
  await page.locator('[data-testid="result"] td bdi').nth(3).waitFor();
  const cells = await page.locator('[data-testid="result"] td bdi').allTextContents();
  expect(cells[0] === 'Miller, "Max"' && cells.length === 4, `the rows are ${cells.join(" | ")}`);
  await open("GET /visits");
  await page.locator('[data-testid="stream"] li').nth(1).waitFor();
  await page.getByText("Receiving").waitFor();
  if (site.axe !== undefined) await look(page, site.axe, "a stream");
  await page.getByRole("button", { name: "Stop" }).click();
  await page.getByText("Ended").waitFor();
  expect((await page.locator('[data-testid="stream"] li').count()) === 2, "the events are gone");
}

/** Nothing is wider than the page where it is written from right to left and its texts are long. */
async function rightToLeft(site) {
  const { page, mock } = site;
  if (openLists(site).length === 0) return NOT_HERE;
  mock.isLong = true;
  await visitList(site);
  await page.evaluate(() => {
    document.documentElement.dir = "rtl";
  });
  for (const width of [375, 768, 1280]) {
    await page.setViewportSize({ width, height: 800 });
    const isWider = await page.evaluate(() => document.documentElement.scrollWidth > innerWidth + 1 || document.querySelector(".dragoman-main").scrollWidth > document.querySelector(".dragoman-main").clientWidth + 1);
    expect(!isWider, `from right to left the list is wider than ${width}`);
  }
  await page.evaluate(() => {
    document.documentElement.dir = "ltr";
  });
  await page.setViewportSize({ width: 1280, height: 900 });
  return undefined;
}

/** The keys of the page work before anything in it was pressed. */
async function keys({ page }) {
  await page.evaluate(() => document.activeElement?.blur());
  await page.keyboard.press("Control+k");
  const palette = page.getByRole("dialog", { name: "Find" });
  await palette.waitFor();
  await page.keyboard.press("Escape");
  await palette.waitFor({ state: "detached" });
  return undefined;
}

/** No content, and null, are not taken for an empty list. */
async function nothing(site) {
  const { page, plan, mock } = site;
  const resource = await visitList(site);
  if (resource === undefined) return NOT_HERE;
  for (const [status, words] of [[204, "no content"], [200, plan.graphql ? "no content" : "null"]]) {
    mock.nothing = status;
    await page.getByRole("button", { name: "Refresh" }).click();
    await page.getByTestId("other-answer").filter({ hasText: words }).waitFor();
    expect(!(await page.locator(".dragoman-main").textContent()).includes("empty list"), `${status} is shown as an empty list`);
  }
  mock.nothing = 0;
  await page.getByRole("button", { name: "Refresh" }).click();
  await rows(page).first().waitFor();
  return undefined;
}

/** What destroys something is not sent by one press of its form: the question names what it is sent to. */
async function asks(site) {
  const { page, plan, mock } = site;
  const number = plan.operations.findIndex((one) => one.destroys === true);
  const resource = plan.resources.find((one) => one.removed !== true && one.operations.includes(number));
  if (resource === undefined || plan.viewOnly === true) return NOT_HERE;
  const { signature, title, inputs = [] } = plan.operations[number];
  await visit(site, resource);
  await page.locator(".dragoman-opener").and(page.locator(`[data-operation=${JSON.stringify(signature)}]`)).click();
  const before = asked(mock, signature).length;
  await submitEntry(page);
  const question = page.getByRole("alertdialog");
  await question.waitFor();
  const words = await question.textContent();
  expect(words.includes(title), `the question is: ${words}`);
  const given = await page.locator("form.dragoman-form input:visible").evaluateAll((all) => all.map((one) => one.value).filter((value) => value !== ""));
  // A reference is shown by its name and its key.
  const known = given.flatMap((value) => [value, /\((.+)\)$/.exec(value)?.[1] ?? value]);
  expect(inputs.length === 0 || known.some((value) => words.includes(value)), `the question does not name ${given.join(", ")}: ${words}`);
  expect(asked(mock, signature).length === before, "it was sent with one press");
  await question.getByRole("button", { name: "Keep" }).click();
  await question.waitFor({ state: "detached" });
  expect(asked(mock, signature).length === before, "it was sent although it was kept");
  await submitEntry(page);
  await question.getByRole("button", { name: "Do it" }).click();
  await page.getByTestId("result").waitFor();
  expect(asked(mock, signature).length === before + 1, "it was not sent after the answer");
  return undefined;
}

/** The other theme is chosen and put back. */
async function theme({ page }) {
  await switchTheme(page);
  await switchTheme(page);
  return undefined;
}

export const flows = { keys, list, operations, filter, sort, paging, detail, needs, create, references, forms, refusal, change, bulk, asks, nothing, validation, call, answers, chart, failure, theme, routes, rightToLeft, access, signIn, policy };
