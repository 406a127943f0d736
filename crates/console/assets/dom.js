// Small helpers to build the page. Texts become text nodes and attributes become attributes: nothing is ever parsed as markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.setAttribute("class", value);
    else if (name === "value") element.value = value;
    else if (name === "width%") element.style.width = `${Math.max(0, Math.min(100, value))}%`;
    else element.setAttribute(name, value === true ? "" : value);
  }
  for (const child of children.flat(Infinity)) {
    if (child === undefined || child === null || child === false || child === "") continue;
    element.append(child instanceof Node ? child : String(child));
  }
  return element;
}

export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const svg = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

export function replace(element, ...children) {
  element.replaceChildren(...children.flat(Infinity).filter((c) => c !== undefined && c !== null && c !== false && c !== ""));
  return element;
}

let hide;
/** Says something in the corner, and to screen readers. */
export function say(text) {
  const said = document.getElementById("said");
  said.textContent = text;
  said.classList.add("on");
  clearTimeout(hide);
  hide = setTimeout(() => said.classList.remove("on"), 2600);
}

/** A command to copy: what the page did, in a terminal. */
export function command(text) {
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      say("Copied");
    } catch {
      const range = document.createRange();
      range.selectNodeContents(code);
      getSelection().removeAllRanges();
      getSelection().addRange(range);
      say("Press Ctrl+C to copy");
    }
  };
  const code = h("code", { tabindex: "0", "aria-label": "The same in a terminal" }, text);
  return h("div", { class: "cmd" }, code, h("button", { class: "plain", type: "button", onclick: copy, "aria-label": `Copy ${text}` }, "Copy"));
}

/** An error with what to do about it. */
export function problem(error, extra) {
  return h("div", { class: "note bad", role: "alert" },
    h("p", {}, h("b", {}, `${error.title || "That did not work"}. `), error.message || String(error)),
    (error.causes || []).map((cause) => h("p", {}, cause.field ? h("code", {}, cause.field) : null, " ", cause.message)),
    error.advice ? h("p", {}, error.advice) : null, extra || error.command ? extra || command(error.command) : null);
}

/** Columns are { name, num?, tight?, cell(item) }. */
export function table(label, columns, items, empty = "Nothing.") {
  if (!items.length) return h("div", { class: "empty" }, empty);
  const kind = (c) => [c.num ? "num" : "", c.tight ? "tight" : "", c.class || ""].join(" ").trim() || undefined;
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": label },
    h("table", {}, h("thead", {}, h("tr", {}, columns.map((c) => (c.name ? h("th", { scope: "col", class: kind(c) }, c.name) : h("td", {}))))),
      h("tbody", {}, items.map((item) => h("tr", {}, columns.map((c) => h("td", { class: kind(c) }, c.cell(item))))))));
}

export function section(title, ...children) {
  const [text, note] = Array.isArray(title) ? title : [title];
  return h("section", {}, h("h2", {}, text, note ? h("small", {}, note) : null), ...children);
}

/** A resource with its group, which may begin a line of its own. */
export const typed = (r) => [r.resource, r.subresource ? `/${r.subresource}` : "", r.group ? h("span", { class: "muted" }, h("wbr"), `.${r.group}`) : ""];

export const bar = (part, hot) => h("div", { class: "bar", "aria-hidden": "true" }, h("i", { "width%": part * 100, class: hot ? "hot" : undefined }));
export const figure = (value, label) => h("div", { class: "figure" }, h("b", {}, value), h("span", {}, label));
export const tag = (text, kind) => h("span", { class: `tag ${kind || ""}` }, text);

/** A dialog; resolves when it is closed. */
export function dialog(title, build) {
  const box = h("dialog", { "aria-label": title });
  const close = () => { box.close(); };
  box.append(h("div", { class: "stack" }, h("h1", {}, title), build(close)));
  box.addEventListener("close", () => box.remove());
  document.body.append(box);
  box.showModal();
  return box;
}

/** Tabs: entries are [name, render(panel)]. */
export function tabs(label, entries, chosen, onchange) {
  const panel = h("div", { role: "tabpanel", tabindex: "0", id: "panel" });
  const list = h("div", { role: "tablist", "aria-label": label });
  let current = -1;
  const show = (i, focus) => {
    if (i === current) return;
    current = i;
    [...list.children].forEach((b, n) => { b.setAttribute("aria-selected", n === i); b.tabIndex = n === i ? 0 : -1; });
    if (focus) list.children[i].focus();
    panel.setAttribute("aria-label", entries[i][0]);
    replace(panel);
    onchange?.(entries[i][0]);
    entries[i][1](panel);
  };
  entries.forEach(([name], i) => list.append(h("button", { role: "tab", type: "button", "aria-controls": "panel", onclick: () => show(i) }, name)));
  list.addEventListener("keydown", (e) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[e.key];
    if (step) { e.preventDefault(); show((current + step + entries.length) % entries.length, true); }
  });
  show(Math.max(0, entries.findIndex(([name]) => name === chosen)));
  return { list, panel, show: (name) => show(entries.findIndex((e) => e[0] === name)) };
}

export function bytes(n) {
  if (n < 1024) return `${Math.round(n)} B`;
  const units = ["KiB", "MiB", "GiB", "TiB"];
  let i = -1;
  do { n /= 1024; i += 1; } while (n >= 1024 && i < units.length - 1);
  return `${n < 10 ? n.toFixed(1) : Math.round(n)} ${units[i]}`;
}

export const count = (n) => Math.round(n).toLocaleString("en-US");
export const ms = (n) => (n >= 1000 ? `${(n / 1000).toFixed(2)} s` : n >= 10 ? `${Math.round(n)} ms` : n >= 0.1 ? `${n.toFixed(1)} ms` : n > 0 ? `${Math.round(n * 1000)} µs` : "–");

export function age(seconds) {
  if (!(seconds >= 0)) return "–";
  const parts = [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]];
  for (const [i, [unit, size]] of parts.entries()) {
    if (seconds < size && i < 3) continue;
    const whole = Math.floor(seconds / size);
    const next = parts[i + 1];
    const rest = next && whole < 10 ? Math.floor((seconds % size) / next[1]) : 0;
    return rest ? `${whole}${unit}${rest}${next[0]}` : `${whole}${unit}`;
  }
}
export const since = (time) => age((Date.now() - new Date(time).getTime()) / 1000);

/** A word for a shell. */
export const word = (text) => (/^[\w./:=@%+,-]+$/.test(text) ? text : `'${String(text).replaceAll("'", "'\\''")}'`);
