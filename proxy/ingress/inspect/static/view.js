// What is shown, made of data. Whatever came from elsewhere becomes text, never markup: nodes are made by `node` alone.

export function node(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "act") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : String(value));
  }
  made.append(...children.filter((child) => child !== null && child !== undefined).map((child) => child instanceof Node ? child : String(child)));
  return made;
}

// A flag of the server, in one piece: a line would break behind its dashes.
export const flag = (name) => node("code", {}, name);

// Lets what is shown say what was `made` anew. Nodes that say the same stay: what is open, scrolled or focused stays so.
export function become(shown, made) {
  const before = [...shown.childNodes];
  made.forEach((next, at) => {
    const there = before[at];
    if (there === undefined) shown.append(next);
    else if (there.nodeType === Node.TEXT_NODE && next.nodeType === Node.TEXT_NODE) {
      if (next.data.startsWith(there.data)) there.appendData(next.data.slice(there.data.length)); // a selection stays
      else there.data = next.data;
    } else if (there.nodeName !== next.nodeName) there.replaceWith(next);
    else {
      for (const { name, value } of next.attributes) there.setAttribute(name, value);
      become(there, [...next.childNodes]);
    }
  });
  before.slice(made.length).forEach((there) => there.remove());
}

// A time of the Unix clock, with its day unless that is today.
export function moment(at) {
  const when = new Date(at * 1000);
  return when.toDateString() === new Date().toDateString() ? when.toLocaleTimeString() : when.toLocaleString();
}

const seconds = (value) => value === null || value === undefined ? "…" : `${value.toFixed(value < 10 ? 2 : 1)} s`;
const STATES = { running: "running", incomplete: "cut off", left: "client left", failed: "failed" };

// How a mark is coloured: what left as it was, what left otherwise, what did not leave.
const COLOURS = { valid: "valid", repaired: "repaired", "does not fit": "repaired", cut: "repaired" };
const colour = (mark) => COLOURS[mark] ?? "refused";
const counted = (count, word) => `${count} ${word}${count === 1 ? "" : "s"}`;
const ordinal = (attempt) => ["first", "second", "third"][attempt - 1] ?? `${attempt}th`;

// `many`: the turn has several answers, so it is told in which of them it stood. Why is in the sentence of the turn.
export function callMark(call, many) {
  const where = many ? `${ordinal(call.attempt)} answer: ` : "";
  return node("span", { class: `mark ${colour(call.mark)}`, title: call.why.join(", ") || null }, `${where}${call.name ?? "block"} ${call.mark}`);
}

// What is left of the quota: a line a limit.
export function quotaLines(quota) {
  const length = (minutes) => minutes < 60 ? `${minutes} min` : minutes < 1440 ? `${Math.round(minutes / 60)} h` : `${Math.round(minutes / 1440)} d`;
  const date = (moment) => moment * 1000 - Date.now() > 20 * 3600e3 ? { dateStyle: "short" } : {};
  const until = (moment) => moment ? ` until ${new Date(moment * 1000).toLocaleString([], { ...date(moment), timeStyle: "short" })}` : "";
  const left = (window) => `${window.left_percent} % of ${window.minutes ? length(window.minutes) : `the ${window.name} limit`}${until(window.resets_at)}`;
  return quota.map((limit) => node("span", { class: limit.exhausted ? "failure" : null, title: `as told at ${new Date(limit.told_at * 1000).toLocaleTimeString()}` },
    [limit.limit === "codex" ? null : limit.name ?? limit.limit, limit.exhausted ? "used up" : null, ...limit.windows.map(left),
      limit.credits ? `credits ${limit.credits}` : null, limit.plan ? `plan ${limit.plan}` : null].filter(Boolean).join(", ")));
}

// `context` is how many tokens the model reads, where its server tells: an answer and all before it are to fit. Of several
// answers the tokens are the sum, which says nothing of that.
function tokensOf(turn, context) {
  if (turn.input_tokens === null) return null;
  const count = (number) => number.toLocaleString("en");
  const share = context && turn.attempts === 1 ? `, ${Math.round(100 * (turn.input_tokens + turn.output_tokens) / context)} % of ${count(context)}` : "";
  return `${count(turn.input_tokens)} → ${count(turn.output_tokens)} tokens${share}`;
}

// One turn in the list.
export function turnRow(turn, open, context) {
  const tokens = tokensOf(turn, context);
  const state = STATES[turn.state];
  return node("button", { type: "button", class: `turn ${turn.state}`, "data-turn": turn.id, act: () => open(turn.id) },
    turn.question ? node("strong", { class: "question" }, turn.question) : null,
    turn.said && turn.state !== "failed" ? node("span", { class: "said" }, turn.said) : null,
    state ? node("span", { class: turn.state === "failed" ? "failure" : "numbers" }, turn.error ? `${state}: ${turn.error}` : state) : null,
    turn.calls.length ? node("span", { class: "marks" }, ...turn.calls.map((call) => callMark(call, turn.attempts > 1))) : null,
    node("span", { class: "facts" },
      ...[moment(turn.at), turn.model, turn.tools ? counted(turn.tools, "tool") : null,
        turn.attempts > 1 ? counted(turn.attempts, "answer") : null, seconds(turn.seconds), tokens,
      ].filter(Boolean).map((text) => node("span", { class: "numbers" }, text)),
      node("span", { class: "client" }, [turn.key, turn.client || "a client without a name"].filter(Boolean).join(" \u00b7 "))));
}

// How a tool's part of the conversation begins, and how another's does.
const RESULT = /^(?:\[tool:[^\]\n]+\]|Result of [^\n]+ \([^)\n]+\):)/;
const MESSAGE = /^\[(?:user|assistant)\]/;

// Lines that bring a tool's result are marked.
function withResults(text) {
  const made = node("pre", { tabindex: "0" });
  let result = false;
  for (const line of text.split(/(?<=\n)/)) {
    result = RESULT.test(line) || (result && !MESSAGE.test(line));
    made.append(result ? node("span", { class: "result" }, line) : line);
  }
  return made;
}

// The text with its blocks marked, each found behind the one before. What is marked is taken from `blocks`: the same block
// may stand in the next answer, with another mark.
function withBlocks(text, blocks) {
  const made = node("pre", { tabindex: "0" });
  let at = 0;
  for (const each of [...blocks]) {
    const found = each.block ? text.indexOf(each.block, at) : -1;
    if (found < 0) continue;
    blocks.splice(blocks.indexOf(each), 1);
    const why = each.why.length ? `: ${each.why.join(", ")}` : "";
    made.append(text.slice(at, found), node("mark", { class: colour(each.mark), title: each.mark + why }, each.block),
      node("span", { class: `mark ${colour(each.mark)}` }, ` ${each.mark}${why} `));
    at = found + each.block.length;
  }
  made.append(text.slice(at));
  return made;
}

function column(title, name, ...children) {
  return node("section", { class: `column ${name}`, "aria-label": title }, node("h3", {}, title), ...children);
}

// The tools of a request, in the form of any API: name to schema.
function schemas(asked) {
  const tools = Array.isArray(asked?.tools) ? asked.tools : [];
  return new Map(tools.map((tool) => tool.function ?? tool).map((tool) => [tool.name, tool.parameters ?? tool.input_schema]));
}

// The arguments of a block, formatted, beside the schema of its tool. What is no JSON has none.
function argumentsOf(block, known) {
  const schema = known.get(block.name);
  let call;
  try {
    call = JSON.parse(block.block.slice(block.block.indexOf("{"), block.block.lastIndexOf("}") + 1));
  } catch {
    return null;
  }
  return node("details", {}, node("summary", {}, `arguments of ${block.name ?? "a tool"}${schema ? " and its schema" : ""}`),
    node("div", { class: "beside" }, node("pre", { tabindex: "0" }, json(call.arguments ?? call)),
      schema ? node("pre", { tabindex: "0" }, json(schema)) : null));
}

const SVG = "http://www.w3.org/2000/svg";

// When the events left, from the begin of the turn to its end.
function timeLine(turn) {
  const whole = Math.max(turn.seconds ?? 0, ...turn.left.map((row) => row.at), 0.001);
  const drawing = document.createElementNS(SVG, "svg");
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", `first after ${seconds(turn.first_seconds)}, over after ${seconds(turn.seconds)}`);
  for (const row of turn.left) {
    const dot = document.createElementNS(SVG, "circle");
    dot.setAttribute("cx", `${(100 * row.at / whole).toFixed(1)}%`);
    dot.setAttribute("cy", "70%");
    dot.setAttribute("r", "4");
    const title = document.createElementNS(SVG, "title");
    title.textContent = `${row.name} after ${seconds(row.at)}`;
    dot.append(title);
    drawing.append(dot);
  }
  return node("div", { class: "line" }, drawing);
}

// A button that copies what `text` gives, and says so.
export function copyButton(label, text) {
  const button = node("button", { type: "button", act: async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = "Copied";
    } catch { // the clipboard is for pages of https and of this machine
      button.textContent = "Not copied: your browser forbids it here";
    }
    setTimeout(() => { button.textContent = label; }, 1500);
  } }, label);
  return button;
}

// One word of a POSIX shell.
const quoted = (text) => `'${text.replaceAll("'", "'\\''")}'`;

// A command that asks the same again. The key stays with who has it.
export function asCurl(turn, baseUrl, keyed) {
  const key = keyed ? ` -H "Authorization: Bearer $TAGCALL_API_KEY"` : "";
  return `curl ${quoted(baseUrl + turn.path)} -H 'Content-Type: application/json'${key} -d ${quoted(JSON.stringify(turn.asked))}`;
}

// What to enter in a plugin: each field with its value, and a button where there is something to copy.
export function pluginFields(plugin, url, key, model) {
  const { hostname, port, pathname, protocol } = new URL(url);
  const values = {
    url, key, model, root: url.replace(/\/v1$/, ""), host: hostname, path: pathname,
    port: port || (protocol === "https:" ? "443" : "80"),
  };
  const instead = { key: "the key that tagcall was started with", model: `a name from ${url}/models` };
  return node("dl", { class: "fields" }, ...Object.entries(plugin.fields).map(([name, text]) => {
    const place = /\{(\w+)\}/.exec(text)?.[1];
    const value = values[place];
    return node("div", {}, node("dt", {}, name), node("dd", {}, text.replace(/\{(\w+)\}/, () => value ?? instead[place]),
      value ? copyButton(`Copy ${name}`, () => value) : null));
  }));
}

// As JSON, without what of an image or a file nobody reads.
const DATA = /^data:[^,]{0,200},/;
const shortened = (_, value) => typeof value === "string" && value.length > 500 && DATA.test(value)
  ? `${value.slice(0, DATA.exec(value)[0].length + 20)}… (${value.length} characters)` : value;
const json = (value) => JSON.stringify(value, shortened, 2);

// A prompt's messages; of one behind another what is the same is folded, so that what was added or changed stands out.
function promptOf(prompt, before) {
  const same = before ? prompt.filter((message, at) => before[at]?.role === message.role && before[at]?.text === message.text) : [];
  const shown = prompt.filter((message) => !same.includes(message)).map((message) => message.role === "developer" && message === prompt[0]
    ? node("details", {}, node("summary", {}, `instructions and tools${before ? ", changed" : ""}, ${message.text.length} characters`), withResults(message.text))
    : node("div", {}, node("span", { class: "role" }, message.ours ? `${message.role}, added by tagcall` : before ? `${message.role}, new here` : message.role), withResults(message.text)));
  if (same.length) shown.unshift(node("p", { class: "role" }, `${counted(same.length, "message")} as in the prompt before`));
  return shown;
}

// What came of a turn, by name, as it is held against another.
export function facts(turn) {
  return {
    "what came of it": turn.said ?? STATES[turn.state] ?? "",
    state: STATES[turn.state] ?? "done",
    calls: turn.calls.map((call) => `${call.name ?? "block"} ${call.mark}`).join(", "),
    model: turn.model,
    client: turn.client,
    tools: String(turn.tools),
    answers: String(turn.attempts),
    seconds: seconds(turn.seconds),
    tokens: tokensOf(turn) ?? "",
  };
}

// The words of a turn, part by part, in lines.
export function asLines(turn) {
  const lines = (text) => text ? text.split("\n") : [];
  return {
    "The client asked": turn.asked === null ? [] : lines(json(turn.asked)),
    "The prompt": turn.answers.flatMap((answer) => answer.prompt.flatMap((message) => [`[${message.role}]`, ...lines(message.text)])),
    "The model wrote": turn.answers.flatMap((answer) => lines(answer.wrote)),
  };
}

// The four columns of one turn, or the reason why it has no words.
export function turnDetail(turn) {
  if (!turn.words) {
    const why = turn.dropped
      ? ["The words of this turn made place for newer ones: ", flag("--inspect-bytes"), " says how many are kept."]
      : ["This server keeps no words. Start it with ", flag("--inspect"), " to see what the model was shown and wrote."];
    return [node("p", {}, ...why)];
  }
  const asked = turn.asked === null
    ? node("p", {}, "It came over a connection whose messages are not kept.")
    : node("pre", { tabindex: "0" }, json(turn.asked));
  const many = turn.answers.length > 1;
  const blocks = [...turn.blocks];
  const known = schemas(turn.asked);
  const prompts = turn.answers.flatMap((answer, number) => [
    many ? node("h3", {}, `Prompt of the ${ordinal(number + 1)} answer`) : null,
    ...promptOf(answer.prompt, number ? turn.answers[number - 1].prompt : null),
  ]);
  const wrote = turn.answers.flatMap((answer, number) => [
    many ? node("h3", {}, `The ${ordinal(number + 1)} answer${number + 1 < turn.answers.length ? ", which was discarded" : ""}`) : null,
    answer.reasoning ? node("details", {}, node("summary", {}, "reasoning"), node("pre", { tabindex: "0" }, answer.reasoning)) : null,
    withBlocks(answer.wrote, blocks),
    ...turn.blocks.filter((block) => block.attempt === number + 1 && block.block).map((block) => argumentsOf(block, known)),
    answer.error ? node("p", { class: "failure" }, answer.error) : null,
  ]);
  const left = turn.left.map((row) => {
    const name = row.name.replace(/^response\./, "").split(/(?<=[._])/).flatMap((part) => [node("wbr"), part]);
    const head = [node("time", {}, seconds(row.at)), " ", ...name, row.count > 1 ? ` × ${row.count}` : ""];
    const body = row.data === null ? row.text : json(row.data);
    return node("details", { class: "event" }, node("summary", {}, ...head), node("pre", { tabindex: "0" }, body));
  });
  return [
    column("The client asked", "asked", asked),
    column("The prompt", "prompt", ...prompts),
    column("The model wrote", "wrote", ...wrote),
    column("What left", "left", timeLine(turn), ...left, turn.message ? node("p", { class: "failure" }, turn.message) : null),
  ];
}
