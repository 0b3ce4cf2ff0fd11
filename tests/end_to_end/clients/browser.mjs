// As run.mjs, but in a page of a headless Chromium; the task also has `browser` (its path), `page` (an address) and
// `screenshot` (a path).
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const { browser: executablePath, page: address, screenshot, api, ways, ...task } = JSON.parse(readFileSync(0, "utf8"));
const browser = await chromium.launch({ executablePath });
try {
  const page = await browser.newPage();
  await page.goto(address);
  for (const way of ways) {
    const seen = await page.evaluate(([...given]) => window.goThrough(...given), [api, way, task]);
    console.log(JSON.stringify(seen));
  }
  await page.screenshot({ path: screenshot, fullPage: true });
} finally {
  await browser.close();
}
