// Roles and bindings, read as the server reads them: which rule gives a right, and who has it.

import { get } from "./api.js";

const BASE = "/apis/rbac.authorization.k8s.io/v1";
const has = (list, word) => (list || []).some((item) => item === "*" || item === word);

/** Whether a rule covers a question { verb, group, resource, subresource, name } or { verb, path }. */
export function covers(rule, q) {
  if (!has(rule.verbs, q.verb)) return false;
  if (q.path) return (rule.nonResourceURLs || []).some((p) => p === "*" || p === q.path || (p.endsWith("*") && q.path.startsWith(p.slice(0, -1))));
  const wanted = q.subresource ? `${q.resource}/${q.subresource}` : q.resource;
  const resource = (rule.resources || []).some((r) => r === "*" || r === wanted || (q.subresource && r === `*/${q.subresource}`));
  return has(rule.apiGroups, q.group || "") && resource && (!rule.resourceNames?.length || rule.resourceNames.includes(q.name));
}

export async function role(kind, namespace, name, signal) {
  return get(kind === "ClusterRole" ? `${BASE}/clusterroles/${encodeURIComponent(name)}` : `${BASE}/namespaces/${encodeURIComponent(namespace)}/roles/${encodeURIComponent(name)}`, { signal });
}

/** Everybody whom a binding gives this right: [{ subject, binding, role, namespace, rule }…]. */
export async function whoCan(q, signal) {
  const paths = [`${BASE}/clusterroles`, `${BASE}/clusterrolebindings`];
  if (!q.path) paths.push(...(q.namespace ? [`${BASE}/namespaces/${encodeURIComponent(q.namespace)}/roles`, `${BASE}/namespaces/${encodeURIComponent(q.namespace)}/rolebindings`] : [`${BASE}/roles`, `${BASE}/rolebindings`]));
  const [clusterRoles, clusterBindings, roles, bindings] = await Promise.all(paths.map((path) => get(path, { signal })));
  const rules = new Map();
  for (const r of clusterRoles.items) rules.set(`ClusterRole//${r.metadata.name}`, r.rules || []);
  for (const r of roles?.items || []) rules.set(`Role/${r.metadata.namespace}/${r.metadata.name}`, r.rules || []);
  const found = [];
  for (const binding of [...clusterBindings.items, ...(bindings?.items || [])]) {
    const ref = binding.roleRef;
    const namespace = binding.metadata.namespace || "";
    const rule = (rules.get(`${ref.kind}/${ref.kind === "Role" ? namespace : ""}/${ref.name}`) || []).find((r) => covers(r, q));
    if (!rule) continue;
    for (const subject of binding.subjects || []) found.push({ subject, binding: binding.metadata.name, kind: namespace ? "RoleBinding" : "ClusterRoleBinding", role: ref, namespace, rule });
  }
  return found;
}

export function ruleText(rule) {
  const list = (items) => (items || []).map((item) => item || "core").join(", ");
  const what = rule.nonResourceURLs?.length ? list(rule.nonResourceURLs) : `${list(rule.resources)} of ${list(rule.apiGroups)}${rule.resourceNames?.length ? ` named ${list(rule.resourceNames)}` : ""}`;
  return `${list(rule.verbs)}: ${what}`;
}
