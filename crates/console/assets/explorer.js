// Every resource that is served, as the tables that the server prints, kept up to date by a watch.

import { age, command, count, h, problem, replace, say, word } from "./dom.js";
import { ApiError, discover, get, list, pathOf, typeOf, wait, watch } from "./api.js";

const PAGE = 250;
/** Words that tell how an object does, in the tables that the server prints. */
const STATES = { Running: "good", Active: "good", Ready: "good", Bound: "good", Available: "good", Complete: "good", Completed: "good", True: "good", Pending: "warn", Terminating: "warn", ContainerCreating: "warn", Released: "warn",
  Failed: "bad", Error: "bad", CrashLoopBackOff: "bad", ImagePullBackOff: "bad", ErrImagePull: "bad", Lost: "bad", NotReady: "bad", Evicted: "bad", Warning: "warn" };
const USUAL = ["pods", "deployments", "services", "configmaps", "secrets", "namespaces", "nodes", "events"];

const route = (params) => `#/explore?${new URLSearchParams(Object.entries(params).filter(([, v]) => v))}`;
export const linkTo = (r, namespace, name) => `#/object?${new URLSearchParams(Object.entries({ g: r.group, v: r.version, r: r.resource, ns: namespace, name }).filter(([, v]) => v))}`;

export async function show(main, params, { signal }) {
  const all = (await discover()).filter((r) => r.verbs.includes("list"));
  const chosen = { g: params.get("g") || "", r: params.get("r") || "pods", v: params.get("v") || "", ns: params.get("ns") || "", labels: params.get("labels") || "", fields: params.get("fields") || "" };
  const is = (r) => r.group === chosen.g && r.resource === chosen.r && (chosen.v ? r.version === chosen.v : r.preferred);
  const resource = all.find(is) || all.find((r) => r.group === chosen.g && r.resource === chosen.r);
  if (signal.aborted) return;
  const body = h("div", { class: "list" });
  replace(main, h("div", { class: "explorer" }, kinds(all, resource, chosen), body));
  if (!resource) {
    replace(body, h("div", { class: "page" }, problem({ title: "Not found", message: `Nothing serves ${chosen.r}${chosen.g ? `.${chosen.g}` : ""}.`, advice: "Custom resources are there once their definition is established." })));
    return;
  }
  new Listing(body, resource, chosen, all, signal).start();
  main.querySelector(".kinds [aria-current]")?.scrollIntoView({ block: "nearest" });
}

function kinds(all, resource, chosen) {
  const shown = all.filter((r) => r.preferred);
  const groups = [...new Set(shown.map((r) => r.group))].sort((a, b) => (a === "" ? -1 : b === "" ? 1 : a < b ? -1 : 1));
  const link = (r) => h("a", { href: route({ g: r.group, r: r.resource, ns: r.namespaced ? chosen.ns : "" }), "aria-current": r === resource && !(marked && usual.includes(r)) ? "true" : null, title: `${r.kind} ${r.short.join(" ")}` }, r.resource);
  const usual = USUAL.map((name) => shown.find((r) => r.resource === name && (r.group === "" || r.group === "apps"))).filter(Boolean);
  let marked = false;
  const part = (title, of) => h("div", { "data-part": "" }, h("h3", {}, title), h("ul", {}, of.map((r) => h("li", { "data-words": `${r.resource} ${r.kind} ${r.group} ${r.short.join(" ")}`.toLowerCase() }, link(r)))));
  const often = part("Usual", usual);
  marked = true;
  const find = h("input", { type: "search", placeholder: "Find a resource", "aria-label": "Find a resource", oninput: () => {
    const words = find.value.toLowerCase().trim();
    for (const li of nav.querySelectorAll("li")) li.hidden = words && !li.dataset.words.includes(words);
    for (const p of nav.querySelectorAll("[data-part]")) p.hidden = ![...p.querySelectorAll("li")].some((li) => !li.hidden);
  } });
  find.addEventListener("keydown", (e) => {
    if (e.key === "Enter") { const first = [...nav.querySelectorAll("li")].find((li) => !li.hidden); if (first) location.hash = first.firstChild.hash; }
  });
  const nav = h("nav", { class: "kinds", "aria-label": "Resources" }, h("div", { class: "find" }, find),
    often, groups.map((group) => part(group || "core", shown.filter((r) => r.group === group).sort((a, b) => (a.resource < b.resource ? -1 : 1)))));
  return nav;
}

/** One table. Only the rows of one page are held, however many objects there are. */
class Listing {
  constructor(body, resource, chosen, all, signal) {
    Object.assign(this, { body, resource, chosen, all, signal, pages: [""], rows: new Map(), keys: [] });
    this.live = h("span", { class: "live" }, "loading");
    this.total = h("span", { class: "muted num" });
    this.scroll = h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": "Objects" });
    this.back = h("button", { type: "button", disabled: true, onclick: () => { this.pages.pop(); this.load(); } }, "Previous");
    this.next = h("button", { type: "button", disabled: true, onclick: () => { this.pages.push(this.continue); this.load(); } }, "Next");
    this.queue = [];
  }

  get namespace() { return this.resource.namespaced ? this.chosen.ns : ""; }

  async start() {
    const { resource, chosen } = this;
    replace(this.body, this.head(), this.scroll,
      h("div", { class: "foot" }, command(this.kubectl()), this.total, h("div", { class: "row" }, this.back, this.next)));
    const tick = setInterval(() => this.ages(), 5000);
    this.signal.addEventListener("abort", () => { clearInterval(tick); this.stop?.abort(); });
    if (resource.namespaced) this.namespaces(chosen.ns);
    await this.load();
  }

  head() {
    const { resource, chosen } = this;
    const go = (change) => { location.hash = route({ g: chosen.g, r: chosen.r, v: chosen.v, ns: this.namespace, labels: chosen.labels, fields: chosen.fields, ...change }); };
    this.space = h("select", { "aria-label": "Namespace", onchange: (e) => go({ ns: e.target.value }) }, h("option", { value: "" }, "All namespaces"));
    const versions = this.all.filter((r) => r.group === resource.group && r.resource === resource.resource);
    const labels = h("input", { type: "search", value: chosen.labels, placeholder: "app=web,tier!=db", spellcheck: "false" });
    const fields = h("input", { type: "search", value: chosen.fields, placeholder: "metadata.name=x", spellcheck: "false" });
    const other = h("select", { class: "phone", "aria-label": "Resource", onchange: (e) => { const r = this.all[e.target.value]; location.hash = route({ g: r.group, r: r.resource, ns: chosen.ns }); } },
      this.all.map((r, i) => (r.preferred ? h("option", { value: i, selected: r === resource }, typeOf(r)) : null)));
    return h("div", { class: "head" },
      h("div", { class: "title" }, h("h1", {}, resource.kind, h("small", {}, resource.group ? `${resource.group}/${resource.version}` : resource.version)), this.live,
        h("div", { class: "actions" }, other,
          versions.length > 1 ? h("select", { "aria-label": "Version", onchange: (e) => go({ v: e.target.value }) }, versions.map((r) => h("option", { value: r.version, selected: r === resource }, r.version))) : null,
          resource.namespaced ? this.space : h("span", { class: "tag" }, "cluster-wide"))),
      h("form", { class: "fields", onsubmit: (e) => { e.preventDefault(); go({ labels: labels.value.trim(), fields: fields.value.trim() }); } },
        h("label", { class: "wide" }, "Labels", labels), h("label", { class: "wide" }, "Fields", fields), h("button", { type: "submit" }, "Filter")));
  }

  kubectl() {
    const { resource, chosen } = this;
    const where = !resource.namespaced ? "" : chosen.ns ? ` -n ${word(chosen.ns)}` : " -A";
    return `kubectl get ${typeOf(resource)}${where}${chosen.labels ? ` -l ${word(chosen.labels)}` : ""}${chosen.fields ? ` --field-selector ${word(chosen.fields)}` : ""} --watch`;
  }

  async namespaces(current) {
    let names = [];
    try {
      const answer = await get("/api/v1/namespaces?limit=500", { signal: this.signal, headers: { Accept: "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io" } });
      names = answer.items.map((item) => item.metadata.name);
    } catch { /* who may not list them names one in the address */ }
    if (current && !names.includes(current)) names.unshift(current);
    if (!names.length) names = ["default"];
    this.space.append(...names.map((name) => h("option", { value: name, selected: name === current }, name)));
  }

  query(extra) {
    return { labelSelector: this.chosen.labels, fieldSelector: this.chosen.fields, ...extra };
  }

  async load() {
    this.stop?.abort();
    this.stop = new AbortController();
    const { signal } = this.stop;
    if (this.signal.aborted) return;
    let found;
    try {
      found = await list(this.resource, this.namespace, this.query({ limit: PAGE, continue: this.pages.at(-1) }), signal);
    } catch (error) {
      if (signal.aborted) return;
      this.state("off", "not loaded");
      if (error.code === 410 && this.pages.length > 1) { this.pages = [""]; say("The list began anew: it was too old to go on"); return this.load(); }
      replace(this.scroll, problem(error, this.hint(error)));
      return;
    }
    this.fill(found);
    if (this.resource.verbs.includes("watch")) this.follow(found.metadata.resourceVersion, signal);
    else this.state("", "not watchable");
  }

  hint(error) {
    if (error.code !== 403 || !this.resource.namespaced || this.chosen.ns) return undefined;
    const field = h("input", { "aria-label": "Namespace", placeholder: "namespace", value: "default" });
    return h("form", { class: "row", onsubmit: (e) => { e.preventDefault(); location.hash = route({ g: this.chosen.g, r: this.chosen.r, ns: field.value.trim() }); } },
      "You may still be allowed to in one namespace:", field, h("button", { type: "submit" }, "Look there"));
  }

  fill(found) {
    this.columns = found.columnDefinitions || [{ name: "Name" }];
    this.withSpace = this.resource.namespaced && !this.chosen.ns;
    this.continue = found.metadata.continue || "";
    this.after = this.pages.length > 1 ? this.keys.at(-1) : "";
    this.rows.clear();
    const shown = this.columns.map((c, i) => [c, i]).filter(([c]) => !c.priority);
    this.shown = shown;
    const head = h("tr", {}, this.withSpace ? h("th", { scope: "col" }, "Namespace") : null, shown.map(([c]) => h("th", { scope: "col", title: c.description }, c.name)));
    this.tbody = h("tbody");
    for (const row of found.rows || []) this.put(row);
    this.keys = [...this.rows.keys()];
    const first = (this.pages.length - 1) * PAGE + 1;
    this.first = first;
    this.left = found.metadata.remainingItemCount;
    this.back.disabled = this.pages.length < 2;
    this.next.disabled = !this.continue;
    this.counted();
    replace(this.scroll, this.rows.size ? h("table", {}, h("thead", {}, head), this.tbody) : this.nothing(head));
    this.scroll.scrollTop = 0;
  }

  nothing(head) {
    return [h("table", {}, h("thead", {}, head), this.tbody), h("div", { class: "empty", "data-empty": "" }, this.chosen.labels || this.chosen.fields ? "No object matches." : "There are none. New ones show up here.")];
  }

  counted() {
    const n = this.rows.size;
    const more = this.left !== undefined ? ` of ${count(this.first - 1 + n + this.left)}` : this.continue ? " of more" : "";
    this.total.textContent = n ? `${count(this.first)}–${count(this.first - 1 + n)}${more}` : "none";
    const empty = this.scroll.querySelector("[data-empty]");
    if (empty) empty.hidden = n > 0;
  }

  key(row) { const m = row.object.metadata; return m.namespace ? `${m.namespace}/${m.name}` : m.name; }

  put(row, changed) {
    const key = this.key(row);
    const meta = row.object.metadata;
    const cell = ([c, i], n) => {
      if (n === 0) return h("td", { class: "name" }, h("a", { href: linkTo(this.resource, meta.namespace, meta.name) }, String(row.cells[i] ?? "")));
      if (c.name === "Age" && meta.creationTimestamp) return h("td", { class: "tight", "data-born": Date.parse(meta.creationTimestamp) }, age((Date.now() - Date.parse(meta.creationTimestamp)) / 1000));
      const value = row.cells[i];
      const state = Object.hasOwn(STATES, value) && /^(Status|Phase|Type|Available|Ready)$/.test(c.name) ? STATES[value] : undefined;
      return h("td", {}, state ? h("span", { class: `state ${state}` }, value) : value === null || value === undefined ? "" : String(value));
    };
    const tr = h("tr", { class: changed ? "changed" : undefined }, this.withSpace ? h("td", { class: "name" }, meta.namespace) : null, this.shown.map(cell));
    const old = this.rows.get(key);
    this.rows.set(key, tr);
    if (old) return void old.replaceWith(tr);
    if (!changed) return void this.tbody.append(tr);
    // Rows are in the order of the server's keys.
    const at = this.keys.findIndex((other) => other > key);
    if (at < 0) { this.keys.push(key); this.tbody.append(tr); } else { this.tbody.insertBefore(tr, this.rows.get(this.keys[at])); this.keys.splice(at, 0, key); }
  }

  drop(row) {
    const key = this.key(row);
    const at = this.keys.indexOf(key);
    if (at < 0) return;
    this.rows.get(key).remove();
    this.rows.delete(key);
    this.keys.splice(at, 1);
  }

  /** Whether an object belongs to this page, not to one before or after it. */
  here(key) {
    return this.rows.has(key) || ((!this.continue || key < (this.keys.at(-1) || "")) && (!this.after || key > this.after));
  }

  apply(event) {
    for (const row of event.object.rows || []) {
      const key = this.key(row);
      if (event.type === "DELETED") { if (this.rows.has(key)) this.drop(row); else if (this.left) this.left -= 1; }
      else if (this.here(key)) this.put(row, true);
      else if (event.type === "ADDED" && this.left !== undefined) this.left += 1;
    }
  }

  async follow(version, signal) {
    let pause = 500;
    while (!signal.aborted) {
      try {
        const path = pathOf(this.resource, this.namespace, "", this.query({ watch: 1, resourceVersion: version, allowWatchBookmarks: true }));
        this.state("on", "live");
        await watch(path, (event) => {
          version = event.object.metadata?.resourceVersion || event.object.rows?.at(-1)?.object?.metadata?.resourceVersion || version;
          pause = 500;
          if (event.type === "BOOKMARK") return;
          // Many changes at once are drawn together.
          if (this.queue.push(event) === 1) requestAnimationFrame(() => this.draw());
        }, signal, true);
      } catch (error) {
        if (signal.aborted) return;
        if (error instanceof ApiError && error.code === 410) return this.load();
        if (error.code === 401 || error.code === 403) return this.state("off", error.title);
        this.state("off", "lost, trying again");
      }
      await wait(pause, signal);
      pause = Math.min(pause * 2, 15000);
    }
  }

  draw() {
    this.queue.splice(0).forEach((event) => this.apply(event));
    this.counted();
  }

  ages() {
    for (const cell of this.scroll.querySelectorAll("[data-born]")) {
      const text = age((Date.now() - cell.dataset.born) / 1000);
      if (cell.textContent !== text) cell.textContent = text;
    }
  }

  state(kind, text) {
    this.live.className = `live ${kind}`;
    this.live.textContent = text;
  }
}
