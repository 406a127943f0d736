// One object: as YAML with who owns which field, what happened to it, what owns it and what it owns, how it came to be.

import { age, bar, command, count, h, problem, replace, since, table, tabs, tag, word } from "./dom.js";
import { ApiError, find, get, pathOf, typeOf, wait, watch } from "./api.js";
import { linkTo } from "./explorer.js";
import { lines, textOf } from "./yaml.js";
import { edit, remove } from "./edit.js";
import { owners } from "./owners.js";
import { versions } from "./history.js";

/** What has expressions in CEL. */
const PRICED = ["customresourcedefinitions", "validatingadmissionpolicies", "mutatingadmissionpolicies", "validatingwebhookconfigurations", "mutatingwebhookconfigurations"];

export async function show(main, params, { signal }) {
  const [group, plural, version] = [params.get("g") || "", params.get("r") || "", params.get("v") || ""];
  const [namespace, name] = [params.get("ns") || "", params.get("name") || ""];
  const resource = await find(group, plural, version) || await find(group, plural);
  if (!resource) throw Object.assign(new Error(`Nothing serves ${plural}.`), { title: "Not found" });
  const it = { resource, namespace, name, path: pathOf(resource, namespace, name), signal,
    target: `${typeOf(resource)} ${word(name)}${namespace ? ` -n ${word(namespace)}` : ""}` };
  const page = h("div", { class: "page" });
  const crumbs = h("nav", { class: "crumbs", "aria-label": "Place" },
    h("a", { href: `#/explore?${new URLSearchParams({ g: group, r: plural })}` }, typeOf(resource)),
    namespace ? [" / ", h("a", { href: `#/explore?${new URLSearchParams({ g: group, r: plural, ns: namespace })}` }, namespace)] : "");
  const live = h("span", { class: "live" }, "loading");
  const facts = h("div", { class: "row muted" });
  const changeable = resource.verbs.includes("update");
  const actions = h("div", { class: "actions" },
    changeable ? h("button", { type: "button", onclick: () => sheets.show("Edit") }, "Edit") : null,
    resource.verbs.includes("delete") ? h("button", { type: "button", class: "danger", onclick: () => remove(it) }, "Delete…") : null);
  replace(main, page);
  page.append(h("div", {}, crumbs, h("div", { class: "title" }, h("h1", { class: "name" }, name), live, actions), facts));
  try {
    it.object = await get(it.path, { signal });
  } catch (error) {
    if (signal.aborted) return;
    page.append(problem(error));
    if (error.code === 404) versions(page.appendChild(h("div", {})), it);
    return;
  }
  const follow = new Set();
  it.onchange = (tell) => follow.add(tell);
  const panel = (render) => (element) => { follow.clear(); render(element, it); };
  const entries = [["YAML", panel(yaml)], ["Events", panel(events)], ["Owners", panel(owners)], ["History", panel(versions)]];
  if (PRICED.includes(resource.resource)) entries.push(["Costs", panel(costs)]);
  if (changeable) entries.push(["Edit", panel(edit)]);
  const sheets = tabs("About this object", entries, params.get("tab") || "YAML");
  page.append(sheets.list, sheets.panel);
  const told = () => replace(facts, summary(it.object));
  told();
  const state = (kind, text) => { live.className = `live ${kind}`; live.textContent = text; };
  keep(it, state, () => { told(); follow.forEach((tell) => tell()); });
}

function summary(object) {
  const m = object.metadata;
  const ready = (object.status?.conditions || []).filter((c) => ["Ready", "Available", "Established"].includes(c.type));
  return [m.creationTimestamp ? h("span", {}, `made ${since(m.creationTimestamp)} ago`) : "", m.generation ? h("span", {}, `generation ${m.generation}`) : "",
    h("span", { class: "mono" }, m.uid || ""), ...ready.map((c) => tag(c.type, c.status === "True" ? "good" : "bad")), m.deletionTimestamp ? tag("being deleted", "warn") : ""].filter(Boolean);
}

/** Follows the object, which may go and come again. */
async function keep(it, state, changed) {
  const { resource, namespace, name, signal } = it;
  if (!resource.verbs.includes("watch")) return state("", "not watchable");
  let version = it.object.metadata.resourceVersion;
  while (!signal.aborted) {
    state("on", "live");
    try {
      await watch(pathOf(resource, namespace, "", { watch: 1, fieldSelector: `metadata.name=${name}`, resourceVersion: version }), (event) => {
        version = event.object.metadata.resourceVersion;
        if (event.type === "BOOKMARK") return;
        it.gone = event.type === "DELETED";
        it.object = event.object;
        state(it.gone ? "off" : "on", it.gone ? "deleted" : "live");
        changed();
      }, signal);
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.code === 410) version = "";
      else if (error.code === 403 || error.code === 401) return state("", "not watched");
      else state("off", "lost, trying again");
    }
    await wait(1500, signal);
  }
}

export function yaml(panel, it) {
  let chosen = -1;
  let all = false;
  let before;
  const legend = h("div", { class: "legend" });
  const box = h("div", { class: "yaml", role: "region", "aria-label": "YAML", tabindex: "0" });
  replace(panel, h("div", { class: "stack" }, legend, box, command(`kubectl get ${it.target} -o yaml --show-managed-fields`)));
  const draw = () => {
    const managed = it.object.metadata.managedFields || [];
    const shown = all ? it.object : { ...it.object, metadata: { ...it.object.metadata, managedFields: undefined } };
    if (!all) delete shown.metadata.managedFields;
    const toggle = (i) => { chosen = chosen === i ? -1 : i; before = undefined; draw(); };
    replace(legend, managed.map((entry, i) => h("button", { type: "button", "aria-pressed": String(chosen === i), title: `${entry.operation} ${entry.apiVersion} ${entry.subresource || ""} ${entry.time || ""}`, onclick: () => toggle(i) },
      h("span", { class: `dot c${i % 8}` }), entry.manager, entry.subresource ? ` /${entry.subresource}` : "", " ", h("span", { class: "muted" }, entry.operation.toLowerCase(), entry.time ? ` ${since(entry.time)} ago` : ""))),
    managed.length ? h("button", { type: "button", class: "plain", onclick: () => { all = !all; before = undefined; draw(); } }, all ? "Hide managedFields" : "Show managedFields") : h("span", { class: "muted" }, "No field has an owner."));
    const rows = lines(shown, managed);
    const texts = new Set(rows.map(textOf));
    let last = "";
    replace(box, rows.flatMap((line) => {
      const dim = chosen >= 0 && !line.owners.includes(chosen) ? "dim" : "";
      const fresh = before && !before.has(textOf(line)) ? "changed" : "";
      const names = line.owners.map((i) => managed[i].manager).join(", ");
      // A name stands where it begins to hold; the bar goes on.
      const said = names !== last ? names : "";
      last = names;
      return [h("div", { class: `w ${dim}`, title: names }, line.owners.map((i) => h("i", { class: `c${i % 8}` }))),
        h("div", { class: `l ${dim} ${fresh}` }, "  ".repeat(line.indent), line.parts.map(([kind, text]) => h("span", { class: kind || undefined }, text))),
        h("div", { class: `o ${dim}` }, said)];
    }));
    before = texts;
  };
  draw();
  it.onchange?.(draw);
}

async function events(panel, it) {
  const m = it.object.metadata;
  const selector = `involvedObject.uid=${m.uid}`;
  const where = it.namespace || "default";
  replace(panel, h("div", { class: "muted" }, "Loading…"));
  try {
    const found = await get(`/api/v1/namespaces/${encodeURIComponent(where)}/events?${new URLSearchParams({ fieldSelector: selector, limit: 500 })}`, { signal: it.signal });
    const when = (e) => e.series?.lastObservedTime || e.lastTimestamp || e.eventTime || e.metadata.creationTimestamp;
    const items = found.items.sort((a, b) => (when(a) < when(b) ? 1 : -1));
    replace(panel, h("div", { class: "stack" }, table("Events", [
      { name: "Reason", cell: (e) => e.reason || "" },
      { name: "Type", tight: true, cell: (e) => tag(e.type || "", e.type === "Warning" ? "warn" : "") },
      { name: "Message", class: "long", cell: (e) => e.message || e.note || "" },
      { name: "From", cell: (e) => e.reportingComponent || e.source?.component || "" },
      { name: "Count", num: true, cell: (e) => count(e.series?.count || e.count || 1) },
      { name: "Last", tight: true, cell: (e) => `${age((Date.now() - Date.parse(when(e))) / 1000)} ago` },
    ], items, "No events. They are kept for an hour."), command(`kubectl events --for ${typeOf(it.resource)}/${word(it.name)}${it.namespace ? ` -n ${word(it.namespace)}` : ""}`)));
  } catch (error) {
    if (!it.signal.aborted) replace(panel, problem(error));
  }
}

async function costs(panel, it) {
  replace(panel, h("div", { class: "muted" }, "Pricing…"));
  const query = new URLSearchParams({ group: it.resource.group, resource: it.resource.resource, name: it.name });
  try {
    const { items } = await get(`/kubelith/v1/costs?${query}`, { signal: it.signal });
    const cost = (x) => (x.error ? tag("wrong", "bad") : x.cost === null ? "no bound" : count(x.cost));
    replace(panel, h("div", { class: "stack" }, table("Costs", [
      { name: "Expression", class: "long", cell: (x) => [h("code", {}, x.expression), h("div", { class: "muted" }, x.path), x.error ? h("div", {}, x.error) : ""] },
      { name: "Costs at most", num: true, tight: true, cell: cost },
      { name: "May cost", num: true, tight: true, cell: (x) => (x.limit === null ? "bounded as it runs" : count(x.limit)) },
      { name: "", cell: (x) => (x.limit && x.cost !== null ? bar(x.cost / x.limit, x.cost > x.limit / 2) : "") },
    ], items, "It has no expressions."), command(`kubectl get ${it.target} -o yaml | kubelith cel cost -`)));
  } catch (error) {
    if (!it.signal.aborted) replace(panel, problem(error));
  }
}
