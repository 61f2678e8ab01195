import { expect, test } from "@playwright/test";
import { PLAN } from "../../src/generated/plan";

test("the interface opens, and its views have addresses", async ({ page, baseURL }) => {
  const errors: string[] = [];
  page.on("pageerror", (error) => errors.push(error.message));
  await page.route(
    (url) => !url.href.startsWith(baseURL!),
    (route) => route.fulfill({ json: [], headers: { "Access-Control-Allow-Origin": "*" } }),
  );
  await page.goto("/");
  await expect(page).toHaveTitle(PLAN.title);
  const first = PLAN.resources.find((resource) => resource.removed !== true)!;
  await page.locator(`[data-ui-resource="${first.id}"]`).click();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(first.title);
  await page.reload();
  await expect(page.getByRole("heading", { level: 1 })).toHaveText(first.title);
  expect(errors).toEqual([]);
});
