// Prints the page's script, bundled for the browser, as {script}.
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const page = fileURLToPath(new URL("page.mjs", import.meta.url));
const { outputFiles } = await build({ entryPoints: [page], bundle: true, write: false, logLevel: "error" });
console.log(JSON.stringify({ script: outputFiles[0].text }));
