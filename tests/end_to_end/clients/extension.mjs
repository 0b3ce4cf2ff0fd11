// A page of an unpacked extension in a headless Chromium, which asks for a stream as Obsidian's Web Clipper asks its
// provider. Given `browser`, `extension` and `profile` (paths), `page` (its address) and `url`; prints what it saw.
import { readFileSync } from "node:fs";
import { chromium } from "playwright-core";

const { browser: executablePath, extension, profile, page: address, url, model } = JSON.parse(readFileSync(0, "utf8"));
const context = await chromium.launchPersistentContext(profile, {
  executablePath,
  args: [`--load-extension=${extension}`, `--disable-extensions-except=${extension}`],
  ignoreDefaultArgs: ["--disable-extensions"],
});
try {
  const page = await context.newPage();
  await page.goto(address);
  const seen = await page.evaluate(async ({ url, model }) => {
    const headers = { "Content-Type": "application/json", Authorization: "Bearer tagcall" };
    const messages = [{ role: "user", content: "Sum this page up." }];
    try {
      const answer = await fetch(`${url}/chat/completions`, {
        method: "POST",
        headers,
        body: JSON.stringify({ model, messages, stream: true }),
      });
      let text = "";
      for await (const piece of answer.body.pipeThrough(new TextDecoderStream())) text += piece;
      return { origin: location.origin, status: answer.status, text };
    } catch (error) {
      return { origin: location.origin, error: String(error) };
    }
  }, { url, model });
  console.log(JSON.stringify(seen));
} finally {
  await context.close();
}
