import { defineConfig } from "@playwright/test";

// Nothing is downloaded: BROWSER_PATH names an installed Chromium or Chrome.
const executablePath = process.env.BROWSER_PATH;
if (executablePath === undefined) {
  throw new Error("Set BROWSER_PATH to an installed Chromium or Chrome, such as /usr/bin/chromium.");
}

const port = process.env.PORT ?? "4173";

export default defineConfig({
  testDir: "tests/browser",
  use: {
    baseURL: `http://localhost:${port}`,
    launchOptions: { executablePath, args: ["--no-sandbox", "--disable-gpu"] },
  },
  webServer: {
    command: `npm run build && npm run preview -- --port ${port} --strictPort`,
    url: `http://localhost:${port}`,
    timeout: 180_000,
  },
});
