// Who owns an object, and what it owns.

import { command, h, problem, replace, tag } from "./dom.js";
import { find, get, ofKind, pathOf } from "./api.js";
import { linkTo } from "./explorer.js";

const MAX_UP = 8;

export const dependents = (uid, signal) => get(`/kubelith/v1/dependents?${new URLSearchParams({ uid })}`, { signal });

/** The dependents of `root` as a tree. */
export function tree(items, root) {
  const of = (owner) => items.filter((item) => item.owner === owner);
  const branch = (owner) => {
    const below = of(owner);
    return below.length ? h("ul", {}, below.map((item) => {
      const li = h("li", {}, tag(item.kind || item.resource), " ", h("span", { class: "name" }, item.name), item.controller ? "" : h("span", { class: "muted" }, " not its controller"));
      find(item.group, item.resource).then((r) => { if (r) li.querySelector(".name").replaceWith(h("a", { class: "name", href: linkTo(r, item.namespace, item.name) }, item.name)); });
      const more = branch(item.uid);
      if (more) li.append(more);
      return li;
    })) : null;
  };
  return h("div", { class: "tree" }, branch(root));
}

/** The chain upwards, nearest first: [{ reference, resource, object?, error? }…]. */
async function above(it) {
  const chain = [];
  let object = it.object;
  while (object && chain.length < MAX_UP) {
    const references = object.metadata.ownerReferences || [];
    const reference = references.find((r) => r.controller) || references[0];
    if (!reference) break;
    const resource = await ofKind(reference.apiVersion, reference.kind);
    const namespace = resource?.namespaced ? it.namespace : "";
    const step = { reference, resource, namespace };
    try { step.object = resource && await get(pathOf(resource, namespace, reference.name), { signal: it.signal }); } catch (error) { step.error = error; }
    if (step.object && step.object.metadata.uid !== reference.uid) step.error = { title: "another object of that name" };
    chain.push(step);
    object = step.error ? undefined : step.object;
  }
  return chain;
}

export async function owners(panel, it) {
  replace(panel, h("div", { class: "muted" }, "Looking…"));
  const uid = it.object.metadata.uid;
  let below;
  const chain = await above(it);
  try {
    const found = await dependents(uid, it.signal);
    below = [found.items.length ? tree(found.items, uid) : h("div", { class: "empty" }, "It owns nothing."),
      found.more ? h("p", { class: "muted" }, "There are more.") : "", found.hidden ? h("p", { class: "muted" }, `${found.hidden} more that you may not list.`) : ""];
  } catch (error) {
    if (it.signal.aborted) return;
    below = [problem(error, error.code === 403 ? command("kubectl create clusterrole console --verb=get --non-resource-url='/kubelith/v1/*'") : undefined)];
  }
  const self = h("li", {}, h("span", { class: "self name" }, it.name), " ", tag(it.object.kind), h("div", {}, below));
  const up = chain.reduce((inner, step) => h("li", {}, tag(step.reference.kind), " ",
    step.resource ? h("a", { class: "name", href: linkTo(step.resource, step.namespace, step.reference.name) }, step.reference.name) : h("span", { class: "name" }, step.reference.name),
    step.error ? [" ", tag(step.error.title || "gone", "bad")] : "", h("ul", {}, inner)), self);
  replace(panel, h("div", { class: "stack" }, h("ul", { class: "tree" }, up),
    command(`kubectl get ${it.target} -o jsonpath='{.metadata.ownerReferences}'`)));
}
