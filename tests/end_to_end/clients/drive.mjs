// A headless Chromium that does what it is told, a line of JSON each. The first line has `browser` (its path) and its
// `args`. One with `open` (`width`, `height`, `scheme`) opens an empty page that knows nothing of those before it, one with
// `close` closes it. One with a function's `body`, which has `page` and `given`, runs it. Each is answered by a line with
// the `value` that it returns, or the `error` that it throws.
import { createInterface } from "node:readline";
import { chromium } from "playwright-core";

const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const { browser: executablePath, args } = JSON.parse((await lines.next()).value);
const browser = await chromium.launch({ executablePath, args });
const AsyncFunction = (async () => {}).constructor;
let context, page, complaints;

async function open({ width, height, scheme }) {
  context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
  page = await context.newPage();
  page.setDefaultTimeout(60_000);
  const heard = complaints = [];
  page.on("console", (message) => { if (message.type() === "error") heard.push(message.text()); });
  page.on("pageerror", (error) => heard.push(String(error)));
  page.on("dialog", (dialog) => { heard.push(`dialog: ${dialog.message()}`); dialog.dismiss(); });
}

try {
  for await (const line of lines) {
    const { open: look, close, body, given } = JSON.parse(line);
    try {
      const value = look ? await open(look)
        : close ? await context.close()
        : await new AsyncFunction("page", "given", "complaints", body)(page, given, complaints);
      console.log(JSON.stringify({ value: value ?? null }));
    } catch (error) {
      console.log(JSON.stringify({ error: String(error.stack ?? error) }));
    }
  }
} finally {
  await browser.close();
}
