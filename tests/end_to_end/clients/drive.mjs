// A page of a headless Chromium that does what it is told: a line of JSON in with a function's body, which has `page` and
// `given`, a line of JSON out with what that returns. The first line has `browser` (its path), its `args`, `width` and
// `height`.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { browser: executablePath, args, width, height, scheme } = JSON.parse((await lines.next()).value);
const browser = await chromium.launch({ executablePath, args });
try {
  const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  const page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const complaints = [];
  page.on("console", (message) => { if (message.type() === "error") complaints.push(message.text()); });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("dialog", (dialog) => { complaints.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
  const AsyncFunction = (async () => {}).constructor;
  for await (const line of lines) {
    const { body, given } = JSON.parse(line);
    const value = await new AsyncFunction("page", "given", "complaints", body)(page, given, complaints);
    console.log(JSON.stringify({ value: value ?? null }));
  }
} finally {
  await browser.close();
}
