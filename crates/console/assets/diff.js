// What changed between two texts, line by line.

import { h } from "./dom.js";

const MAX = 3_000_000;
const AROUND = 3;

/** Pairs of [sign, line]: " " for both, "-" for the old text, "+" for the new one. */
export function compare(before, after) {
  const a = before.split("\n"), b = after.split("\n");
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const x = a.slice(start, a.length - end), y = b.slice(start, b.length - end);
  const same = (lines) => lines.map((line) => [" ", line]);
  return [...same(a.slice(0, start)), ...middle(x, y), ...same(a.slice(a.length - end))];
}

function middle(x, y) {
  // Too much to compare well is shown as replaced.
  if (x.length * y.length > MAX) return [...x.map((line) => ["-", line]), ...y.map((line) => ["+", line])];
  const width = y.length + 1;
  const common = new Uint32Array((x.length + 1) * width);
  for (let i = x.length - 1; i >= 0; i -= 1) {
    for (let j = y.length - 1; j >= 0; j -= 1) {
      common[i * width + j] = x[i] === y[j] ? common[(i + 1) * width + j + 1] + 1 : Math.max(common[(i + 1) * width + j], common[i * width + j + 1]);
    }
  }
  const out = [];
  let i = 0, j = 0;
  while (i < x.length || j < y.length) {
    if (i < x.length && j < y.length && x[i] === y[j]) { out.push([" ", x[i]]); i += 1; j += 1; }
    else if (j >= y.length || (i < x.length && common[(i + 1) * width + j] >= common[i * width + j + 1])) { out.push(["-", x[i]]); i += 1; }
    else { out.push(["+", y[j]]); j += 1; }
  }
  return out;
}

/** The changes with a few lines around them. */
export function view(before, after) {
  const all = compare(before, after);
  const near = all.map(() => false);
  all.forEach(([sign], i) => {
    if (sign !== " ") for (let k = Math.max(0, i - AROUND); k <= Math.min(all.length - 1, i + AROUND); k += 1) near[k] = true;
  });
  if (!near.includes(true)) return h("div", { class: "empty" }, "No difference.");
  const box = h("div", { class: "diff", tabindex: "0", role: "region", "aria-label": "Changes" });
  let hidden = false;
  all.forEach(([sign, line], i) => {
    if (near[i]) box.append(h("div", { class: sign === "+" ? "add" : sign === "-" ? "del" : undefined }, `${sign} ${line}`));
    else if (!hidden) box.append(h("div", { class: "gap" }, "…"));
    hidden = !near[i];
  });
  return box;
}
