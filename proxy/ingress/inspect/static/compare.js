// Two turns side by side, with what differs marked: in colour, and by a sign in front of the line.
import { asLines, facts, moment, node } from "./view.js";

// Lines to the left and right that are matched in one go: their product is the work.
const MOST = 1_000_000;
// Lines round a difference that are shown as well.
const ROUND = 3;

// What lines have become of `one` in `other`, in order: [left, right] with null for what only one has.
export function pairs(one, other) {
  let head = 0;
  while (head < Math.min(one.length, other.length) && one[head] === other[head]) head++;
  let tail = 0;
  while (tail < Math.min(one.length, other.length) - head && one.at(-1 - tail) === other.at(-1 - tail)) tail++;
  const same = (lines) => lines.map((line) => [line, line]);
  return [...same(one.slice(0, head)), ...matched(one.slice(head, one.length - tail), other.slice(head, other.length - tail)),
    ...same(one.slice(one.length - tail))];
}

// By their longest common subsequence; of what is too long nothing is matched.
function matched(one, other) {
  if (one.length * other.length > MOST) return [...one.map((line) => [line, null]), ...other.map((line) => [null, line])];
  const longest = Array.from({ length: one.length + 1 }, () => new Uint32Array(other.length + 1));
  for (let i = one.length - 1; i >= 0; i--) {
    for (let j = other.length - 1; j >= 0; j--) {
      longest[i][j] = one[i] === other[j] ? longest[i + 1][j + 1] + 1 : Math.max(longest[i + 1][j], longest[i][j + 1]);
    }
  }
  const found = [];
  let i = 0, j = 0;
  while (i < one.length || j < other.length) {
    if (i < one.length && j < other.length && one[i] === other[j]) found.push([one[i++], other[j++]]);
    else if (j === other.length || (i < one.length && longest[i + 1][j] >= longest[i][j + 1])) found.push([one[i++], null]);
    else found.push([null, other[j++]]);
  }
  return found;
}

// One side of the pairs: what both have is folded where it is far from a difference.
function side(found, at) {
  const differs = found.map(([left, right]) => left === null || right === null);
  const near = (index) => differs.slice(Math.max(0, index - ROUND), index + ROUND + 1).some(Boolean);
  const made = node("pre", { tabindex: "0" });
  let folded = 0;
  const fold = () => {
    if (folded) made.append(node("span", { class: "role" }, `${folded} ${folded === 1 ? "line" : "lines"} as in the other`));
    folded = 0;
  };
  found.forEach((pair, index) => {
    if (!near(index)) {
      folded++;
      return;
    }
    fold();
    if (pair[at] === null) return;
    const sign = at === 0 ? "-" : "+";
    made.append(differs[index] ? node("span", { class: at === 0 ? "line-only refused" : "line-only valid" }, `${sign} ${pair[at]}\n`) : `  ${pair[at]}\n`);
  });
  fold();
  return made;
}

// A part of both turns. `one` and `other` are its lines, `names` those of the turns.
function part(title, names, one, other) {
  const found = pairs(one, other);
  const same = found.every(([left, right]) => left === right);
  const head = (text) => node("h3", {}, text);
  if (same) return [node("section", { class: "column whole", "aria-label": title }, head(`${title}: the same`))];
  return names.map((name, at) =>
    node("section", { class: "column", "aria-label": `${title}, ${name}` }, head(`${title}, ${name}`), side(found, at)));
}

// All of it, the earlier turn to the left: what came of both, then each part in which they may differ.
export function comparison(...turns) {
  const [one, other] = turns.sort((left, right) => left.at - right.at);
  const names = [`earlier (${moment(one.at)})`, `later (${moment(other.at)})`];
  const [left, right] = [facts(one), facts(other)];
  const rows = Object.keys(left).filter((name) => left[name] || right[name]).map((name) =>
    node("tr", { class: left[name] === right[name] ? null : "differs" },
      node("th", { scope: "row" }, name), node("td", {}, left[name]), node("td", {}, right[name])));
  const table = node("table", { class: "column whole", "aria-label": "What came of them" },
    node("tr", {}, node("td"), ...names.map((name) => node("th", { scope: "col" }, name))), ...rows);
  if (!one.words || !other.words) return [table, node("p", { class: "whole" }, "The words of one of them are not kept.")];
  const [words, others] = [asLines(one), asLines(other)];
  return [table, ...Object.keys(words).flatMap((title) => part(title, names, words[title], others[title]))];
}
