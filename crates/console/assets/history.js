// How an object came to be, as far back as the server remembers, and objects that are gone.

import { age, command, count, h, problem, replace, say, section, table, tag, word } from "./dom.js";
import { discover, find, get, pathOf, post, typeOf } from "./api.js";
import { linkTo } from "./explorer.js";
import { toYaml } from "./yaml.js";
import { view } from "./diff.js";

const past = (r, namespace, name, signal) => get(`/kubelith/v1/history?${new URLSearchParams({ group: r.group, resource: r.resource, namespace, name })}`, { signal });
const raw = (r, namespace, name) => command(`kubectl get --raw ${word(`/kubelith/v1/history?group=${r.group}&resource=${r.resource}&namespace=${namespace}&name=${name}`)}`);

function clean(object) {
  const copy = structuredClone(object);
  delete copy.metadata.managedFields;
  delete copy.metadata.resourceVersion;
  return copy;
}

/** The versions of one object with what each changed. */
export async function versions(panel, it) {
  const { resource, namespace, name, signal } = it;
  replace(panel, h("div", { class: "muted" }, "Loading…"));
  let items;
  try {
    items = (await past(resource, namespace, name, signal)).items;
  } catch (error) {
    if (!signal.aborted) replace(panel, problem(error, error.code === 403 ? command("kubectl create clusterrole console --verb=get --non-resource-url='/kubelith/v1/*'") : undefined));
    return;
  }
  const shown = items.map((item, i) => {
    const older = items[i + 1];
    const last = managers(item.object).at(0);
    const body = h("div");
    const details = h("details", { open: i === 0 && item.type !== "ADDED" ? true : null }, h("summary", {}, tag(item.type.toLowerCase(), item.type === "DELETED" ? "bad" : item.type === "ADDED" ? "good" : ""), ` revision ${item.revision} `,
      h("span", { class: "muted" }, `${when(item)}${last && item.type !== "DELETED" ? ` by ${last}` : ""}`)), body);
    const draw = () => {
      if (!details.open || body.firstChild || !item.object) return;
      if (item.type === "DELETED") body.append(restore(resource, item.object));
      body.append(view(older?.object && item.type !== "ADDED" ? toYaml(clean(older.object)) : "", toYaml(clean(item.object))));
    };
    details.addEventListener("toggle", draw);
    draw();
    return details;
  });
  replace(panel, h("div", { class: "stack" }, shown.length ? shown : h("div", { class: "empty" }, "The store no longer has anything of it: changes are kept until the store is compacted, every five minutes unless --etcd-compaction-interval says otherwise."), raw(resource, namespace, name)));
}

/** How long ago a change was: as the server saw it, or as the object says, where the change is older than the server's start. */
function when(item) {
  if (item.ageSeconds !== undefined) return `${age(item.ageSeconds)} ago`;
  if (item.type === "DELETED") return "before the server's start";
  const times = (item.object?.metadata?.managedFields || []).map((m) => m.time).concat(item.object?.metadata?.creationTimestamp).filter(Boolean).sort();
  return times.length ? `${age((Date.now() - Date.parse(times.at(-1))) / 1000)} ago` : "";
}

const managers = (object) => (object?.metadata?.managedFields || []).filter((m) => m.time).sort((a, b) => (a.time < b.time ? 1 : -1)).map((m) => m.manager);

/** Makes an object that is gone again, under a new uid. */
function restore(resource, object) {
  const said = h("div");
  const go = h("button", { type: "button" }, "Make it again");
  const owned = (object.metadata.ownerReferences || []).length;
  go.onclick = async () => {
    go.disabled = true;
    const copy = clean(object);
    for (const field of ["uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation", "selfLink", "generateName"]) delete copy.metadata[field];
    delete copy.status;
    if (resource.kind === "Pod") delete copy.spec.nodeName;
    if (resource.kind === "Service") { delete copy.spec.clusterIP; delete copy.spec.clusterIPs; }
    try {
      await post(pathOf(resource, object.metadata.namespace, "", { fieldManager: "kubelith-console" }), copy);
      say("Made again");
      replace(said, h("div", { class: "note good" }, "It is back, with a new uid. ", h("a", { href: linkTo(resource, object.metadata.namespace, object.metadata.name) }, "Open it")));
    } catch (error) {
      replace(said, problem(error));
      go.disabled = false;
    }
  };
  return h("div", { class: "stack" }, h("div", { class: "row" }, go, owned ? h("span", { class: "muted" }, "It had an owner: if that is gone, it is collected again.") : ""), said);
}

export async function show(main, params, { signal }) {
  const all = (await discover()).filter((r) => r.preferred && r.verbs.includes("list") && r.verbs.includes("create"));
  const g = params.get("g") || "", r = params.get("r") || "configmaps", ns = params.get("ns") || "";
  const resource = await find(g, r) || all[0];
  const choice = h("select", {}, all.map((x, i) => h("option", { value: i, selected: x.group === resource.group && x.resource === resource.resource }, typeOf(x))));
  const where = h("input", { value: ns, placeholder: "all", spellcheck: "false" });
  const name = h("input", { placeholder: "any", spellcheck: "false" });
  const go = (e) => {
    e.preventDefault();
    const to = all[choice.value];
    const query = { g: to.group, r: to.resource, ns: to.namespaced ? where.value.trim() : "" };
    const one = name.value.trim();
    location.hash = one ? `${linkTo(to, query.ns, one)}&tab=History` : `#/history?${new URLSearchParams(Object.entries(query).filter(([, v]) => v))}`;
  };
  const gone = h("div", {}, h("div", { class: "muted" }, "Loading…"));
  replace(main, h("div", { class: "page" }, h("div", { class: "title" }, h("h1", {}, "History")),
    h("p", { class: "muted" }, "Changes are remembered until the store is compacted (every five minutes, unless --etcd-compaction-interval says otherwise), over restarts too, and the last hundred of each resource for longer. Name an object to see how it came to be."),
    h("form", { class: "fields", onsubmit: go }, h("label", { class: "wide" }, "Resource", choice), h("label", {}, "Namespace", where), h("label", {}, "Name", name), h("button", { type: "submit", class: "primary" }, "Show")),
    section([`Deleted ${typeOf(resource)}`, "that are still gone, newest first"], gone), raw(resource, ns, "")));
  try {
    const { items } = await past(resource, ns, "", signal);
    replace(gone, table("Deleted", [{ name: "Object", class: "name", cell: (x) => h("a", { href: `${linkTo(resource, x.namespace, x.name)}&tab=History` }, [x.namespace, x.name].filter(Boolean).join("/")) },
      { name: "Revision", num: true, cell: (x) => count(Number(x.revision)) }, { name: "When", tight: true, cell: when }], items, "None."));
  } catch (error) {
    if (!signal.aborted) replace(gone, problem(error, error.code === 403 ? command("kubectl create clusterrole console --verb=get --non-resource-url='/kubelith/v1/*'") : undefined));
  }
}
