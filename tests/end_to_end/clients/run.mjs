// Runs a client in each of the ways that the task on standard input names: {client, api, ways, ...what a Session takes}.
// Prints one line of JSON for each: what `report` gives.
import { readFileSync } from "node:fs";
import { report } from "./session.mjs";

const { client, api, ways, ...task } = JSON.parse(readFileSync(0, "utf8"));
const { [api]: known } = await import(`./${client}.mjs`);

for (const way of ways) console.log(JSON.stringify(await report(known, way, task)));
