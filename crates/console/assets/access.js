// Who may do what, which rule says so, and who was turned away.

import { age, command, count, h, problem, replace, section, table, tag, typed, word } from "./dom.js";
import { discover, get, post, typeOf } from "./api.js";
import { covers, role, ruleText, whoCan } from "./rbac.js";

const VERBS = ["get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "*"];
const GRANTED = /by (ClusterRoleBinding|RoleBinding) "([^"]+)" of (ClusterRole|Role) "([^"]+)"/;

export async function show(main, params, { signal, user }) {
  const all = await discover();
  const names = [...new Set(all.filter((r) => r.preferred).flatMap((r) => [typeOf(r), ...r.subresources.map((s) => `${typeOf({ ...r, resource: `${r.resource}/${s}` })}`)]))];
  const value = (name) => params.get(name) || "";
  const input = (props) => h("input", { spellcheck: "false", autocapitalize: "off", ...props });
  const f = {
    user: input({ value: value("user"), placeholder: user.username }), groups: input({ value: value("groups"), placeholder: "devs, system:authenticated" }),
    verb: input({ value: value("verb") || "get", list: "verbs", required: true }), what: input({ value: value("what") || "pods", list: "whats", required: true }),
    ns: input({ value: value("ns"), placeholder: "all" }), name: input({ value: value("name"), placeholder: "any" }),
  };
  const answer = h("div", { "aria-live": "polite" });
  const holders = h("div", { "aria-live": "polite" });
  const question = () => read(f, all);
  const form = h("form", { class: "fields", onsubmit: (e) => { e.preventDefault(); may(answer, question(), user, signal); } },
    h("label", { class: "wide" }, "User", f.user), h("label", { class: "wide" }, "Groups", f.groups), h("label", {}, "Verb", f.verb), h("label", { class: "wide" }, "Resource, or a path as /metrics", f.what),
    h("label", {}, "Namespace", f.ns), h("label", {}, "Name", f.name),
    h("button", { type: "submit", class: "primary" }, "May they?"), h("button", { type: "button", onclick: () => who(holders, question(), signal) }, "Who may?"));
  const denied = h("div");
  replace(main, h("div", { class: "page" }, h("div", { class: "title" }, h("h1", {}, "Access")),
    h("datalist", { id: "verbs" }, VERBS.map((v) => h("option", { value: v }))), h("datalist", { id: "whats" }, names.map((n) => h("option", { value: n }))),
    section(["May somebody do something?", "without a user it is about you"], form), answer, holders,
    section(["Turned away lately", "403, newest first; the same question is counted once"], denied)));
  if (params.get("ask")) form.requestSubmit();
  denials(denied, f, signal);
}

function read(f, all) {
  const text = (name) => f[name].value.trim();
  const q = { user: text("user"), groups: text("groups").split(",").map((g) => g.trim()).filter(Boolean), verb: text("verb"), namespace: text("ns"), name: text("name") };
  const what = text("what");
  if (what.startsWith("/")) return { ...q, path: what };
  const [plural, ...rest] = what.split(".");
  const [resource, subresource] = plural.split("/");
  const known = all.find((r) => r.preferred && r.resource === resource && (!rest.length || r.group === rest.join(".")));
  return { ...q, group: rest.length ? rest.join(".") : known?.group || "", resource, subresource: subresource || "" };
}

function canI(q) {
  const target = q.path || `${q.resource}${q.group ? `.${q.group}` : ""}${q.name ? `/${q.name}` : ""}`;
  return `kubectl auth can-i ${word(q.verb)} ${word(target)}${q.subresource ? ` --subresource=${word(q.subresource)}` : ""}${q.path ? "" : q.namespace ? ` -n ${word(q.namespace)}` : " -A"}`
    + (q.user ? ` --as=${word(q.user)}` : "") + (q.user ? q.groups.map((g) => ` --as-group=${word(g)}`).join("") : "");
}

async function may(answer, q, me, signal) {
  replace(answer, h("div", { class: "muted" }, "Asking…"));
  const attributes = q.path ? { nonResourceAttributes: { path: q.path, verb: q.verb } }
    : { resourceAttributes: { verb: q.verb, group: q.group, resource: q.resource, subresource: q.subresource, namespace: q.namespace, name: q.name } };
  const own = !q.user && !q.groups.length;
  const kind = own ? "SelfSubjectAccessReview" : "SubjectAccessReview";
  const spec = own ? attributes : { ...attributes, user: q.user, groups: q.groups };
  let status;
  try {
    status = (await post(`/apis/authorization.k8s.io/v1/${kind.toLowerCase()}s`, { apiVersion: "authorization.k8s.io/v1", kind, spec }, { signal })).status;
  } catch (error) {
    return void (signal.aborted || replace(answer, problem(error)));
  }
  const who = own ? me.username : q.user || q.groups.join(", ");
  const box = h("div", { class: `note ${status.allowed ? "good" : "bad"}`, "data-answer": String(Boolean(status.allowed)) },
    h("p", {}, h("b", {}, status.allowed ? "Yes. " : "No. "), `${who} ${status.allowed ? "may" : "may not"} ${q.verb} ${q.path || `${q.resource}${q.subresource ? `/${q.subresource}` : ""}${q.group ? `.${q.group}` : ""}`}${q.namespace ? ` in ${q.namespace}` : q.path ? "" : " everywhere"}.`),
    status.reason ? h("p", {}, status.reason) : status.allowed ? "" : h("p", {}, "No rule says so."), status.evaluationError ? h("p", { class: "muted" }, status.evaluationError) : "", command(canI(q)));
  replace(answer, box);
  const granted = GRANTED.exec(status.reason || "");
  if (!granted) return;
  try {
    const rules = (await role(granted[3], q.namespace, granted[4], signal)).rules || [];
    const rule = rules.find((r) => covers(r, q));
    if (rule) box.insertBefore(h("p", {}, "The rule: ", h("code", {}, ruleText(rule))), box.lastChild);
  } catch { /* who may not read roles sees the reason alone */ }
}

async function who(holders, q, signal) {
  replace(holders, h("div", { class: "muted" }, "Reading roles and bindings…"));
  try {
    const found = await whoCan(q, signal);
    const what = q.path || `${q.resource}${q.group ? `.${q.group}` : ""}`;
    replace(holders, section([`Who may ${q.verb} ${what}`, `${count(found.length)} grants by RBAC; system:masters may do everything`], table("Who may", [
      { name: "Who", class: "name", cell: (g) => (g.subject.namespace ? `${g.subject.namespace}/${g.subject.name}` : g.subject.name) },
      { name: "Kind", tight: true, cell: (g) => tag(g.subject.kind) },
      { name: "Where", cell: (g) => g.namespace || "everywhere" },
      { name: "By", cell: (g) => (g.binding === g.role.name ? g.binding : `${g.binding} → ${g.role.name}`) },
      { name: "Rule", cell: (g) => h("code", {}, ruleText(g.rule)) },
    ], found, "No binding gives this right."), command("kubectl get clusterrolebindings,rolebindings -A -o wide")));
  } catch (error) {
    if (!signal.aborted) replace(holders, problem(error));
  }
}

async function denials(denied, f, signal) {
  try {
    const { items } = await get("/kubelith/v1/denials", { signal });
    const what = (d) => (d.resource ? `${d.resource}${d.subresource ? `/${d.subresource}` : ""}${d.group ? `.${d.group}` : ""}` : d.path);
    const ask = (d) => h("button", { type: "button", class: "plain", "aria-label": `Explain: ${d.user} ${d.verb} ${what(d)}`, onclick: () => {
      f.user.value = d.user; f.groups.value = d.groups.join(", "); f.verb.value = d.verb; f.ns.value = d.namespace; f.name.value = d.name; f.what.value = what(d);
      f.user.form.requestSubmit();
      document.getElementById("main").scrollTop = 0;
    } }, "Explain");
    replace(denied, table("Turned away", [{ name: "Who", class: "name long", cell: (d) => d.user }, { name: "Verb", tight: true, cell: (d) => d.verb }, { name: "What", cell: (d) => (d.resource ? typed(d) : d.path) },
      { name: "Where", class: "name long", cell: (d) => [d.namespace, d.name].filter(Boolean).join("/") }, { name: "Why", class: "long", cell: (d) => d.reason || "no rule" }, { name: "Times", num: true, cell: (d) => count(d.count) },
      { name: "Last", tight: true, cell: (d) => `${age((Date.now() - d.last) / 1000)} ago` }, { name: "", cell: ask }], items, "Nobody, since the server started."), command("kubectl get --raw /kubelith/v1/denials"));
  } catch (error) {
    if (!signal.aborted) replace(denied, problem(error));
  }
}
