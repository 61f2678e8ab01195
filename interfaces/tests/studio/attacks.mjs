// What hostile code in the frame tries: nothing of it works, the page stays usable, and each try is in the console.
// The code runs in the frame as the interface's own does; the checker, which would refuse it, is left out on purpose.
import { expect, until } from "./page.mjs";

/** Each with the text that the console has of it; `attempt` gives true where it worked. */
function attempts(address, page) {
  return [
    ["the page around it", () => window.parent.document.title !== undefined],
    ["cross-origin frame", () => setTimeout(() => window.top.document.title) && false],
    ["cross-origin frame", () => setTimeout(() => (window.top.location.href += "#x")) && false],
    ["connect-src", (address) => fetch(`${address}/fetch`).then(() => true)],
    ["connect-src", (address, page) => fetch(`${page}/api/state`).then(() => true)],
    ["connect-src", (address) => navigator.sendBeacon(`${address}/beacon`) && false],
    ["connect-src", (address) => void new WebSocket(address.replace("http", "ws"))],
    ["connect-src", (address) => void new EventSource(`${address}/events`)],
    ["img-src", (address) => void document.body.append(Object.assign(new Image(), { src: `${address}/image` }))],
    ["script-src-elem", (address) => void document.body.append(Object.assign(document.createElement("script"), { src: `${address}/script` }))],
    ["script-src-elem", () => void document.body.append(Object.assign(document.createElement("script"), { textContent: "globalThis.hasRun = true" })) || globalThis.hasRun === true],
    ["style-src-elem", (address) => void document.head.append(Object.assign(document.createElement("link"), { rel: "stylesheet", href: `${address}/style` }))],
    ["frame-src", (address) => void document.body.append(Object.assign(document.createElement("iframe"), { src: `${address}/frame` }))],
    ["worker-src", () => void new Worker(URL.createObjectURL(new Blob(["1"])))],
    ["localStorage", () => localStorage.length >= 0],
    ["sessionStorage", () => sessionStorage.length >= 0],
    ["indexedDB", () => indexedDB.open("x") !== undefined],
    ["caches", () => caches.open("x") !== undefined],
    ["cookies", () => document.cookie !== undefined],
    ["open a window", (address) => window.open(`${address}/window`) !== null],
    ["browser dialog", () => confirm("Give me your password") === true],
    ["left its document", (address) => void (location.href = `${address}/leave`)],
    ["left its document", () => location.reload()],
    [
      "submit a form",
      (address) => {
        const form = Object.assign(document.createElement("form"), { action: `${address}/form`, method: "post" });
        document.body.append(form);
        form.submit();
      },
    ],
    ["unknown type", () => window.top.postMessage({ type: "OPEN_TAB", payload: {}, nonce: "x", timestamp: 1 }, "*")],
    ["agreed envelope", () => window.top.postMessage("INIT", "*")],
    ["wrong nonce", () => window.top.postMessage({ type: "NETWORK_REQUEST", payload: { method: "GET", path: "/books" }, nonce: "guess", timestamp: 1, requestId: "1" }, "*")],
  ].map(([told, attempt]) => ({ told, attempt, address, page }));
}

export async function attacks(stage) {
  const { page, shop } = stage;
  await stage.prepare();
  await stage.openConsole();
  stage.isAttacked = true;
  const calls = shop.calls.length;
  const origin = new URL(page.url()).origin;
  const windows = stage.context.pages().length;
  const secret = await page.evaluate(() => sessionStorage.getItem("dragoman-studio-secret"));
  for (const { told, attempt, address } of attempts(`${shop.origin}/attack`)) {
    await stage.clearConsole();
    const frame = await stage.frame();
    const text = attempt.toString();
    // Playwright runs code past the policy, so the attempt itself is what a script of the frame would do.
    const run = frame.evaluate(`Promise.resolve().then(() => (${text})(${JSON.stringify(address)}, ${JSON.stringify(origin)})).then((worked) => worked === true, () => false)`);
    const worked = await Promise.race([run.catch(() => false), new Promise((done) => setTimeout(() => done(false), 3000))]);
    expect(worked !== true, `this worked: ${text}`);
    await stage.logged(told).catch((error) => {
      throw new Error(`${error.message} after ${text}`);
    });
    await back(stage);
  }
  expect(shop.hits.length === 0, `the frame reached ${shop.hits.join(", ")}`);
  expect(shop.calls.length === calls, "a forged request reached the API");
  expect(stage.context.pages().length === windows, "a window was opened");
  expect(new URL(page.url()).origin === origin && !page.url().includes("#x"), "the page was moved");
  expect((await page.evaluate(() => sessionStorage.getItem("dragoman-studio-secret"))) === secret, "the secret of the page is gone");
  await forgery(stage);
  await endless(stage);
}

/** A READY with a wrong nonce ends the frame; the last safe version comes back. */
async function forgery(stage) {
  const frame = await stage.frame();
  await frame.evaluate(() => window.top.postMessage({ type: "READY", payload: {}, nonce: "guess", timestamp: 1 }, "*"));
  await stage.logged("READY with a wrong nonce");
  await until(() => frame.isDetached(), "the frame was not destroyed");
  await back(stage);
}

/** After an end by force the last safe version is shown again, by itself; after too many on request. */
async function back(stage) {
  const again = stage.page.locator(".cover").getByRole("button", { name: "Try again" });
  await until(async () => (await again.count()) > 0 || (await stage.page.locator("iframe.frame:not(.frame-coming)").count()) > 0, "nothing is shown any more");
  if ((await again.count()) > 0) await again.click();
  await stage.shown(1);
}

/** A loop without an end keeps the frame busy, not the page; the frame is stopped. */
async function endless(stage) {
  const { page } = stage;
  const frame = await stage.frame();
  const since = Date.now();
  void frame.evaluate(() => void setTimeout(() => { for (;;); }, 0)).catch(() => {});
  // The loop begins; if it has not, the page is asked to react all the same.
  await new Promise((done) => setTimeout(done, 500));
  await page.locator("#composer").fill("still here");
  await page.locator("#composer").fill("");
  const isStopped = (await page.locator(".entry", { hasText: "kept its frame busy" }).count()) > 0;
  // After 8 seconds the frame is stopped: a machine that is that slow tells nothing here.
  expect(!isStopped || Date.now() - since > 7000, "the page reacts only after the frame was stopped");
  await stage.logged("kept its frame busy");
  await back(stage);
  await stage.accessible("after a stopped interface");
}
