// What others have added to the server: definitions, servers behind it, webhooks and policies, and how they fare.

import { age, command, count, h, ms, problem, replace, section, table, tag } from "./dom.js";
import { find, get, pathOf, poll } from "./api.js";
import { linkTo } from "./explorer.js";

const EVERY = 5000;
const ADMISSION = "admissionregistration.k8s.io";

async function all(group, resource, signal) {
  const r = await find(group, resource);
  if (!r) return { items: [] };
  try {
    return { r, items: (await get(pathOf(r, "", "", { limit: 500 }), { signal })).items };
  } catch (error) {
    return { r, items: [], error };
  }
}

const condition = (object, type) => (object.status?.conditions || []).find((c) => c.type === type);
const sign = (object, type) => {
  const c = condition(object, type);
  return c ? tag(c.status === "True" ? type : `not ${type}`, c.status === "True" ? "good" : "bad") : tag("unknown", "warn");
};
const why = (object, ...types) => types.map((type) => condition(object, type)).filter((c) => c && c.status !== "True" && c.message).map((c) => c.message).join(" ");
const link = (of, object) => h("a", { href: linkTo(of.r, object.metadata.namespace, object.metadata.name) }, object.metadata.name);
const times = [{ name: "Calls", num: true, cell: (x) => count(x.s?.calls || 0) }, { name: "Median", num: true, tight: true, cell: (x) => ms(x.s?.p50 || 0) }, { name: "90 of 100", num: true, tight: true, cell: (x) => ms(x.s?.p90 || 0) }, { name: "99 of 100", num: true, tight: true, cell: (x) => ms(x.s?.p99 || 0) }];
const price = (of, object) => h("a", { href: `${linkTo(of.r, "", object.metadata.name)}&tab=Costs`, "aria-label": `Costs of ${object.metadata.name}` }, "costs");
const bad = (n) => (n ? tag(count(n), "bad") : "0");

export async function show(main, params, { signal }) {
  const page = h("div", { class: "page" }, h("h1", {}, "Extensions"), h("div", { class: "muted" }, "Loading…"));
  replace(main, page);
  await poll(EVERY, signal, async () => {
    const [crds, services, validating, mutating, policies, changing, stats] = await Promise.all([
      all("apiextensions.k8s.io", "customresourcedefinitions", signal), all("apiregistration.k8s.io", "apiservices", signal),
      all(ADMISSION, "validatingwebhookconfigurations", signal), all(ADMISSION, "mutatingwebhookconfigurations", signal),
      all(ADMISSION, "validatingadmissionpolicies", signal), all(ADMISSION, "mutatingadmissionpolicies", signal),
      get("/kubelith/v1/extensions", { signal }).catch((error) => ({ error, webhooks: [], policies: [], conversions: [], failures: [] }))]);
    if (signal.aborted) return;
    const top = document.getElementById("main").scrollTop;
    replace(page, h("h1", {}, "Extensions"), stats.error ? problem(Object.assign(stats.error, { title: "How they fare is not shown" }), command("kubectl create clusterrole console --verb=get --non-resource-url='/kubelith/v1/*'")) : "",
      failures(stats), hooks(mutating, validating, stats), rules(policies, changing, stats), h("div", { class: "grid" }, definitions(crds, stats), servers(services)),
      command("kubectl get crds,apiservices,mutatingwebhookconfigurations,validatingwebhookconfigurations,validatingadmissionpolicies"), command("kubectl get --raw /kubelith/v1/extensions"));
    document.getElementById("main").scrollTop = top;
  });
}

function failures(stats) {
  if (!stats.failures.length) return "";
  return section(["Refusals and failures", "what webhooks and policies said, newest first"], table("Failures", [{ name: "Name", class: "name", cell: (f) => f.name }, { name: "Kind", tight: true, cell: (f) => tag(f.kind) }, { name: "What it said", class: "long", cell: (f) => f.why }, { name: "Times", num: true, cell: (f) => count(f.count) },
    { name: "Last", tight: true, cell: (f) => `${age((Date.now() - f.last) / 1000)} ago` }], stats.failures));
}

function hooks(mutating, validating, stats) {
  const rows = (of, type, kind) => of.items.flatMap((c) => (c.webhooks || []).map((hook) => ({ c, of, hook, kind, s: stats.webhooks.find((s) => s.name === hook.name && s.type === type) })));
  const list = [...rows(mutating, "admit", "mutating"), ...rows(validating, "validating", "validating")];
  const target = (hook) => (hook.clientConfig?.service ? `${hook.clientConfig.service.namespace}/${hook.clientConfig.service.name}` : hook.clientConfig?.url || "");
  return section("Webhooks", mutating.error ? problem(mutating.error) : table("Webhooks", [{ name: "Webhook", class: "name", cell: (x) => [h("div", {}, x.hook.name), h("div", { class: "muted" }, link(x.of, x.c))] }, { name: "Kind", tight: true, cell: (x) => tag(x.kind) },
    { name: "At", cell: (x) => target(x.hook) }, { name: "On failure", tight: true, cell: (x) => x.hook.failurePolicy || "Fail" }, ...times,
    { name: "Refused", num: true, cell: (x) => count(x.s?.rejected || 0) }, { name: "Failed", num: true, cell: (x) => bad(x.s?.failed) }, { name: "Passed over", num: true, cell: (x) => bad(x.s?.failedOpen) }], list, "None."));
}

function rules(policies, changing, stats) {
  const rows = (of, type) => of.items.map((p) => ({ p, of, type, s: merged(stats.policies.filter((s) => s.policy === p.metadata.name && s.type === type)) }));
  const list = [...rows(changing, "Mutating"), ...rows(policies, "Validating")];
  const warnings = (p) => (p.status?.typeChecking?.expressionWarnings || []).map((w) => `${w.fieldRef}: ${w.warning}`).join(" ");
  return section("Policies", policies.error ? problem(policies.error) : table("Policies", [{ name: "Policy", class: "name", cell: (x) => link(x.of, x.p) }, { name: "Kind", tight: true, cell: (x) => tag(x.type.toLowerCase()) },
    { name: "Expressions", num: true, cell: (x) => count((x.p.spec.validations || x.p.spec.mutations || []).length) }, ...times, { name: "Denied", num: true, cell: (x) => count(x.s?.denied || 0) },
    { name: "Over budget", num: true, cell: (x) => bad(x.s?.overBudget) }, { name: "Errors", num: true, cell: (x) => bad(x.s?.errors) }, { name: "Budget", tight: true, cell: (x) => price(x.of, x.p) }, { name: "Type check", cell: (x) => warnings(x.p) || (x.p.status?.typeChecking ? tag("fine", "good") : "–") }], list, "None."));
}

const merged = (list) => (list.length ? { calls: list.reduce((n, s) => n + s.calls, 0), p50: Math.max(...list.map((s) => s.p50)), p90: Math.max(...list.map((s) => s.p90)), p99: Math.max(...list.map((s) => s.p99)), denied: list.reduce((n, s) => n + s.denied, 0), errors: list.reduce((n, s) => n + s.errors, 0), overBudget: list.reduce((n, s) => n + s.overBudget, 0) } : undefined);

function definitions(crds, stats) {
  const rows = crds.items.map((c) => ({ c, s: stats.conversions.find((s) => s.definition === c.metadata.name) }));
  return section("Definitions of resources", crds.error ? problem(crds.error) : table("Definitions", [{ name: "Definition", class: "name", cell: (x) => link(crds, x.c) }, { name: "State", cell: (x) => [sign(x.c, "Established"), " ", why(x.c, "NamesAccepted", "Established")] },
    { name: "Versions", cell: (x) => x.c.spec.versions.filter((v) => v.served).map((v) => v.name).join(", ") }, { name: "Conversion", cell: (x) => (x.c.spec.conversion?.strategy === "Webhook" ? `webhook, ${ms(x.s?.p99 || 0)}${x.s?.failed ? `, ${count(x.s.failed)} failed` : ""}` : "–") }, { name: "Budget", tight: true, cell: (x) => price(crds, x.c) }], rows, "None."));
}

function servers(services) {
  const others = services.items.filter((s) => s.spec.service);
  return section(["API servers behind this one", `${count(services.items.length - others.length)} group versions are served here`], services.error ? problem(services.error) : table("API services", [{ name: "Group version", class: "name", cell: (s) => link(services, s) },
    { name: "State", cell: (s) => [sign(s, "Available"), " ", why(s, "Available")] }, { name: "At", cell: (s) => `${s.spec.service.namespace}/${s.spec.service.name}` }], others, "None."));
}
