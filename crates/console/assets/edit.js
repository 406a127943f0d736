// Changes of an object: tried on the server first, shown as a difference, then saved. And deletion, with what goes with it.

import { command, dialog, h, problem, replace, say } from "./dom.js";
import { send } from "./api.js";
import { dependents, tree } from "./owners.js";
import { toYaml } from "./yaml.js";
import { view } from "./diff.js";

const YAML = { "Content-Type": "application/yaml" };

function plain(object) {
  const copy = structuredClone(object);
  delete copy.metadata.managedFields;
  return copy;
}

async function put(it, text, dryRun) {
  const query = new URLSearchParams({ fieldValidation: "Strict", fieldManager: "kubelith-console", ...(dryRun ? { dryRun: "All" } : {}) });
  const response = await send(`${it.path}?${query}`, { method: "PUT", headers: YAML, body: text });
  const warnings = (response.headers.get("warning") || "").match(/"(?:[^"\\]|\\.)*"/g) || [];
  return { object: await response.json(), warnings: warnings.map((w) => w.slice(1, -1)) };
}

export function edit(panel, it) {
  const base = plain(it.object);
  const before = toYaml(base);
  const area = h("textarea", { class: "code", spellcheck: "false", autocapitalize: "off", "aria-label": "The object as YAML", value: before });
  const outcome = h("div", { class: "stack", "aria-live": "polite" });
  const save = h("button", { type: "button", class: "primary", disabled: true }, "Save");
  const check = h("button", { type: "button" }, "Check on the server");
  const reload = h("button", { type: "button", class: "plain", onclick: () => edit(panel, it) }, "Start again from what is stored");
  const notice = h("div");
  let checked = "";
  area.addEventListener("input", () => { save.disabled = area.value !== checked; });
  area.addEventListener("keydown", (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) { e.preventDefault(); (save.disabled ? check : save).click(); } });
  check.onclick = async () => {
    check.disabled = true;
    replace(outcome, h("div", { class: "muted" }, "The server tries it, and stores nothing…"));
    const text = area.value;
    try {
      const { object, warnings } = await put(it, text, true);
      checked = text;
      save.disabled = false;
      replace(outcome, h("h2", {}, "This would change", h("small", {}, "as the server completed and admitted it")), warnings.map((w) => h("div", { class: "note warn" }, w)), view(before, toYaml(plain(object))));
    } catch (error) {
      save.disabled = true;
      replace(outcome, problem(error));
    }
    check.disabled = false;
  };
  save.onclick = async () => {
    save.disabled = true;
    try {
      const { object } = await put(it, area.value, false);
      it.object = object;
      say("Saved");
      edit(panel, it);
    } catch (error) {
      replace(outcome, problem(error));
    }
  };
  const resources = (object) => object.metadata.resourceVersion;
  it.onchange?.(() => { if (resources(it.object) !== resources(base)) replace(notice, h("div", { class: "note warn" }, "The object was changed meanwhile. ", reload)); });
  replace(panel, h("div", { class: "stack" }, notice, area, h("div", { class: "row" }, check, save, reload), outcome,
    command(`kubectl edit ${it.target}`), command("kubectl replace --dry-run=server -f object.yaml")));
}

export function remove(it) {
  const box = dialog(`Delete ${it.name}?`, (close) => {
    const preview = h("div", { class: "stack" }, h("div", { class: "muted" }, "Looking for what would go with it…"));
    const how = h("select", { "aria-label": "Dependents" }, h("option", { value: "Background" }, "Delete dependents afterwards"), h("option", { value: "Foreground" }, "Delete dependents first"), h("option", { value: "Orphan" }, "Leave dependents"));
    const said = h("div");
    const line = h("div");
    const told = () => replace(line, command(`kubectl delete ${it.target} --cascade=${how.value.toLowerCase()}`));
    how.addEventListener("change", told);
    told();
    const go = h("button", { type: "button", class: "danger" }, "Delete");
    go.onclick = async () => {
      go.disabled = true;
      try {
        const body = JSON.stringify({ apiVersion: "v1", kind: "DeleteOptions", propagationPolicy: how.value, preconditions: { uid: it.object.metadata.uid } });
        await send(it.path, { method: "DELETE", headers: { "Content-Type": "application/json" }, body });
        say("Deleted");
        close();
      } catch (error) {
        replace(said, problem(error));
        go.disabled = false;
      }
    };
    look(it, preview);
    return [preview, h("div", { class: "row" }, how, go, h("button", { type: "button", onclick: close }, "Cancel")), said, line];
  });
  return box;
}

async function look(it, preview) {
  const parts = [];
  const finalizers = it.object.metadata.finalizers || [];
  if (finalizers.length) parts.push(h("div", { class: "note warn" }, `It stays until its finalizers are done: ${finalizers.join(", ")}`));
  try {
    if (it.resource.kind === "Namespace" && !it.resource.group) parts.push(h("div", { class: "note warn" }, "Everything in this namespace goes with it."));
    const found = await dependents(it.object.metadata.uid, it.signal);
    parts.push(found.items.length ? h("div", {}, h("p", {}, `${found.items.length}${found.more ? " or more" : ""} dependents would be collected:`), tree(found.items, it.object.metadata.uid))
      : h("p", {}, "Nothing names it as its owner."));
    if (found.hidden) parts.push(h("p", { class: "muted" }, `${found.hidden} more that you may not list.`));
  } catch (error) {
    parts.push(h("p", { class: "muted" }, `What would go with it is not known: ${error.message}`));
  }
  replace(preview, parts);
}
