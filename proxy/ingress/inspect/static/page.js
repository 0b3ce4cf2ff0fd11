// The page at `/`: what the server says of itself, the turns as they happen, and one of them with its words.
import { comparison } from "./compare.js";
import { asCurl, become, copyButton, flag, moment, node, pluginFields, quotaLines, turnDetail, turnRow } from "./view.js";

const by = (id) => document.getElementById(id);
const turns = new Map(); // by id, oldest first
let limit = 100;
let shown = null;
let source = null;
let server = null; // what it said of itself

// Whatever a proxy has put before it: this file lies in the folder of all that the page asks for.
const place = (path) => new URL(path, import.meta.url);
const baseUrl = place("../v1").href.replace(/(\/v1)+$/, "/v1");

class Refused extends Error {}
const SILENT = "The server does not answer.";

async function ask(path, options = {}) {
  const reply = await fetch(place(path), options).catch(() => { throw new Error(SILENT); });
  if (reply.ok) return reply.headers.get("Content-Type").startsWith("application/json") ? reply.json() : reply;
  const body = await reply.json().catch(() => null); // what a proxy says in its place is no JSON
  throw new (reply.status === 401 ? Refused : Error)(body?.error?.message ?? SILENT);
}

// Access

async function enter(headers) {
  try {
    await ask("session", { method: "POST", headers });
    by("entry").hidden = true;
    by("entry-error").textContent = "";
    by("key").value = "";
    await begin();
  } catch (error) {
    wantKey(error.message);
  }
}

function wantKey(why = "") {
  by("entry").hidden = false;
  by("entry-error").textContent = why;
  by("status").textContent = "A key is wanted";
  by("key").focus();
}

by("enter").addEventListener("click", () => enter({ Authorization: `Bearer ${by("key").value}` }));
by("key").addEventListener("keydown", (event) => {
  if (event.key === "Enter") by("enter").click();
});

// Head

function showState(state) {
  limit = state.turns;
  server = state;
  showFacts(state);
  by("actions").replaceChildren(
    copyButton("Copy base URL", () => baseUrl),
    ...state.models.slice(0, 1).map((model) => copyButton("Copy model", () => model)),
    state.keyed ? "" : copyButton("Copy key", () => "tagcall"),
    node("button", { type: "button", act: tryTool }, "Send a test question"));
  showPlugins();
}

function showFacts(state) {
  const status = by("status");
  status.className = state.problem ? "trouble" : "ready";
  status.textContent = state.problem ?? "Ready";
  const mib = (bytes) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
  const facts = {
    version: state.version,
    backend: state.backend,
    models: state.models.join(", "),
    "quota left": state.quota.length ? node("span", { id: "quota" }, ...quotaLines(state.quota)) : null,
    words: state.inspect ? `kept in memory, ${mib(state.used)} of ${mib(state.bytes)}` : node("span", {}, "not kept (", flag("--inspect"), ")"),
  };
  by("facts").replaceChildren(...Object.entries(facts).filter(([, value]) => value).map(([name, value]) =>
    node("div", {}, node("dt", {}, name), node("dd", {}, value))));
}

// With a turn's end the quota is another one.
let looking = null;
function lookAgain() {
  looking ??= setTimeout(async () => {
    looking = null;
    try {
      showFacts(await ask("state"));
    } catch {
      // the event stream says when the server does not answer
    }
  }, 1000);
}

// And a backend may come or go without a turn: whoever comes back to the page, or has it before him, sees how it is.
const LOOK = 30_000;
function lookIfSeen() {
  if (!document.hidden && source?.readyState === EventSource.OPEN) lookAgain();
}
document.addEventListener("visibilitychange", lookIfSeen);
setInterval(lookIfSeen, LOOK);

// One tool loop: its turns show in the list as they happen, the last is opened.
async function tryTool(event) {
  by("trial").className = "trouble"; // as whatever goes wrong
  await busy(event.target, "Asking …", by("trial"), async () => {
    const found = await ask("trial", { method: "POST" });
    by("trial").className = found.good ? "ready" : "trouble";
    by("trial").textContent = found.remedy ? `${found.said} ${found.remedy}` : `${found.said}.`;
    if (found.turns.length) await open(found.turns.at(-1));
  });
}

// What the button says while it works; what goes wrong is told in `place`.
async function busy(button, words, place, work) {
  const before = button.textContent;
  const focused = button === document.activeElement;
  button.disabled = true;
  button.textContent = words;
  place.textContent = "";
  try {
    await work();
  } catch (error) {
    place.textContent = error.message;
  } finally {
    button.disabled = false;
    button.textContent = before;
    // A button that is disabled loses the focus: whoever works by keyboard goes on where he was.
    if (focused && document.activeElement === document.body) button.focus();
  }
}

function showPlugins() {
  const chosen = by("plugin").value;
  by("plugins").hidden = false;
  by("plugin").replaceChildren(...server.plugins.map((plugin) => node("option", {}, plugin.name)));
  by("plugin").value = server.plugins.some((plugin) => plugin.name === chosen) ? chosen : server.plugins[0].name;
  showPlugin();
}

function showPlugin() {
  const plugin = server.plugins.find((each) => each.name === by("plugin").value);
  by("where").textContent = plugin.where;
  by("lacks").textContent = plugin.lacks ?? "";
  by("fields").replaceChildren(pluginFields(plugin, baseUrl, server.keyed ? null : "tagcall", server.models[0]));
}

by("plugin").addEventListener("change", showPlugin);

// Filters: what a turn is, by its fields; and its words, which only the server has.

const NO_TURN = by("none").textContent;
let having = null; // the ids of the turns whose words hold what is searched for

const FILTERS = {
  reason: (turn) => turn.reasons,
  client: (turn) => [turn.client],
  model: (turn) => [turn.model],
};
// How their values are said to people.
const told = { reason: (value) => server?.reasons[value] ?? value };

function wanted(turn) {
  const fits = Object.entries(FILTERS).every(([name, of]) => !by(name).value || of(turn).includes(by(name).value));
  return fits && (having === null || having.has(turn.id));
}

function showFilters() {
  for (const [name, of] of Object.entries(FILTERS)) {
    const found = [...new Set([...turns.values()].flatMap(of))].filter(Boolean).sort();
    const chosen = by(name).value;
    const options = [["", `any ${name}`], ...found.map((each) => [each, told[name]?.(each) ?? each])];
    if (options.length === by(name).options.length) continue;
    by(name).replaceChildren(...options.map(([value, label]) => node("option", { value }, label)));
    by(name).value = found.includes(chosen) ? chosen : "";
  }
  by("filters").hidden = !turns.size;
}

let searching = null;
function search() {
  clearTimeout(searching);
  searching = setTimeout(async () => {
    const words = by("search").value.trim();
    having = words ? new Set((await ask(`turns?words=${encodeURIComponent(words)}`)).turns.map((turn) => turn.id)) : null;
    draw();
  }, 200);
}

for (const name of Object.keys(FILTERS)) by(name).addEventListener("change", draw);
by("search").addEventListener("input", search);

// List

function showTurns() {
  const focused = document.activeElement?.dataset?.turn;
  const groups = new Map();
  showFilters();
  for (const turn of [...turns.values()].reverse().filter(wanted)) {
    if (!groups.has(turn.group)) groups.set(turn.group, []);
    groups.get(turn.group).push(turn);
  }
  by("none").hidden = groups.size > 0;
  by("none").textContent = turns.size ? "No turn has that." : NO_TURN;
  by("list").replaceChildren(...[...groups.values()].map((group) =>
    node("li", { class: "group" }, ...group.map((turn) => {
      const row = turnRow(turn, open, server?.contexts[turn.model]);
      if (turn.id === shown) row.setAttribute("aria-current", "true");
      return row;
    }))));
  if (focused) by("list").querySelector(`[data-turn="${CSS.escape(focused)}"]`)?.focus();
}

let drawing = false;
function take(turn) {
  if (turns.get(turn.id)?.state === "running" && turn.state !== "running") lookAgain();
  turns.set(turn.id, turn);
  while (turns.size > limit) turns.delete(turns.keys().next().value);
  if (turn.id === shown) open(turn.id, false);
  draw();
}

function draw() {
  if (drawing) return;
  drawing = true;
  requestAnimationFrame(() => {
    drawing = false;
    showTurns();
  });
}

// Detail

// The turn whose words are shown. While it runs it is looked at anew, once a second and for a tenth of the time at most.
let opened = null;
let next = null;

async function open(id, move = true) {
  const began = performance.now();
  shown = id;
  clearTimeout(next);
  showTurns();
  try {
    const turn = await ask(`turns/${encodeURIComponent(id)}`);
    if (shown !== id) return;
    const same = opened?.id === id;
    const over = opened?.state !== turn.state;
    opened = turn;
    by("detail-title").textContent = `${turn.model}, ${moment(turn.at)}`;
    by("said").textContent = turn.said ?? "";
    const columns = turnDetail(turn);
    if (same) become(by("columns"), columns);
    else by("columns").replaceChildren(...columns);
    if (!same) by("editor").replaceChildren();
    if (!same) by("comparison").replaceChildren();
    by("columns").hidden = by("comparison").hasChildNodes();
    if (!same || over) showButtons();
    clearTimeout(next);
    if (turn.state === "running") next = setTimeout(() => open(id, false), Math.max(1000, 9 * (performance.now() - began)));
  } catch (error) {
    // What somebody reads stays; beside the reason nothing is left of another turn.
    if (shown !== id || (!move && opened?.id === id)) return;
    opened = null;
    by("detail-title").textContent = "Turn";
    by("said").textContent = "";
    by("buttons").replaceChildren();
    by("trouble").textContent = "";
    by("columns").replaceChildren(node("p", { class: "failure" }, error.message));
  }
  by("detail").hidden = false;
  if (move) show(by("detail"));
}

// Gives it the focus, its beginning in view: of what is higher than a small window browsers show the middle.
function show(section) {
  section.focus({ preventScroll: true });
  const { top } = section.getBoundingClientRect();
  if (top < 0 || top > innerHeight / 2) section.scrollIntoView();
}

function showButtons() {
  const turn = opened;
  const path = `turns/${encodeURIComponent(turn.id)}`;
  const button = (label, words, work) =>
    node("button", { type: "button", act: (event) => busy(event.target, words, by("trouble"), work) }, label);
  const usable = turn.asked && server.asked_again.includes(turn.path);
  by("trouble").textContent = "";
  by("buttons").replaceChildren(...[
    usable && copyButton("Copy as curl", () => asCurl(turn, baseUrl, server.keyed)),
    turn.words && copyButton("Copy as JSON", () => JSON.stringify(opened, null, 2)),
    usable && turn.method === "POST" && button("Save as fixture", "Saving …", () => save(`${path}/fixture`)),
    usable && button("Run again", "Asking …", async () => {
      const told = await ask(`${path}/again`, { method: "POST" });
      await open(told.turns[0]);
    }),
    usable && button("Edit and send again", "…", async () => edit(path, turn.asked)),
    others(turn),
    turn.lines && node("a", { class: "button", href: place(`${path}/lines`), target: "_blank", rel: "noopener" }, "Raw JSON-RPC lines"),
  ].filter(Boolean));
}

// A choice of the turn that this one is held against: first the one that it repeats, then those of its group, then the
// newest. What has come since is among them whenever somebody looks.
function others(turn) {
  const choice = node("select", { id: "other", "aria-label": "Compare with another turn" });
  const related = (each) => Number(each.id === turn.repeats || each.repeats === turn.id) * 2 + Number(each.group === turn.group);
  const name = (each) => [each.id === turn.repeats ? "what this one repeats" : null, moment(each.at), each.question || each.said].filter(Boolean).join(", ");
  const fill = () => {
    const chosen = choice.value;
    const rest = [...turns.values()].reverse().filter((each) => each.id !== turn.id);
    rest.sort((one, other) => related(other) - related(one));
    choice.replaceChildren(node("option", { value: "" }, "Compare with …"), ...rest.map((each) => node("option", { value: each.id }, name(each))));
    choice.value = rest.some((each) => each.id === chosen) ? chosen : "";
  };
  fill();
  choice.addEventListener("focus", fill);
  choice.addEventListener("change", () => compare(choice.value));
  return choice;
}

async function compare(id) {
  const turn = opened;
  by("trouble").textContent = "";
  try {
    const made = id ? comparison(turn, await ask(`turns/${encodeURIComponent(id)}`)) : [];
    if (opened?.id !== turn.id) return;
    by("comparison").replaceChildren(...made);
  } catch (error) {
    by("trouble").textContent = error.message;
  }
  by("columns").hidden = by("comparison").hasChildNodes();
}

// The request as text that can be changed, tools included; it is sent as it stands then.
function edit(path, asked) {
  const text = node("textarea", { "aria-label": "The request", spellcheck: "false", rows: "16" });
  text.value = JSON.stringify(asked, null, 2);
  const send = node("button", { type: "button", act: (event) => busy(event.target, "Asking …", by("trouble"), async () => {
    const told = await ask(`${path}/again`, { method: "POST", body: text.value, headers: { "Content-Type": "application/json" } });
    await open(told.turns[0]);
  }) }, "Send");
  by("editor").replaceChildren(text, send);
  text.focus();
}

// What the server sends, as a download under the name that it gives.
async function save(path) {
  const reply = await ask(path);
  const link = node("a", { download: /filename="([^"]+)"/.exec(reply.headers.get("Content-Disposition"))[1] });
  link.href = URL.createObjectURL(await reply.blob());
  link.click();
  URL.revokeObjectURL(link.href);
}

function close() {
  const id = shown;
  shown = opened = null;
  clearTimeout(next);
  by("detail").hidden = true;
  showTurns();
  by("list").querySelector(`[data-turn="${CSS.escape(id)}"]`)?.focus();
}

by("close").addEventListener("click", close);

document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, textarea, select") || event.altKey || event.ctrlKey || event.metaKey) return;
  // Where there is something to read, arrows scroll it.
  if (event.key.startsWith("Arrow") && event.target !== document.body && !by("list").contains(event.target)) return;
  const rows = [...by("list").querySelectorAll(".turn")];
  const focused = rows.indexOf(document.activeElement);
  const at = focused < 0 ? rows.findIndex((row) => row.dataset.turn === shown) : focused;
  if (event.key === "ArrowDown" || event.key === "j") rows[Math.min(at + 1, rows.length - 1)]?.focus();
  else if (event.key === "ArrowUp" || event.key === "k") rows[Math.max(at - 1, 0)]?.focus();
  else if (event.key === "Escape" && shown) close();
  else return;
  event.preventDefault();
});

// Life

async function begin() {
  try {
    showState(await ask("state"));
  } catch (error) {
    if (error instanceof Refused) wantKey();
    else by("status").textContent = error.message;
    return;
  }
  source?.close();
  source = new EventSource(place("events"));
  source.addEventListener("turn", (event) => take(JSON.parse(event.data)));
  source.addEventListener("error", () => {
    by("status").className = "trouble";
    by("status").textContent = SILENT;
    if (source.readyState === EventSource.CLOSED) again();
  });
  source.addEventListener("open", async () => {
    turns.clear();
    showState(await ask("state"));
    draw(); // it may have none of them any more
  });
}

// A browser follows a server that has come back by itself, but not one that wants the key again; nor does each always.
async function again() {
  try {
    await ask("state");
  } catch (error) {
    if (error instanceof Refused) wantKey();
    else setTimeout(again, 2000);
    return;
  }
  await begin();
}

const link = location.hash.slice(1);
if (link) {
  history.replaceState(null, "", location.pathname);
  await enter({ "X-Tagcall-Link": link });
} else {
  await begin();
}
