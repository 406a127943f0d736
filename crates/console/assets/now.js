// What the server does at this moment. The server tells counts that only grow; rates are made of two looks at them.

import { age, bar, bytes, command, count, figure, h, ms, problem, replace, section, table, tag, typed } from "./dom.js";
import { get, poll } from "./api.js";
import { Chart } from "./chart.js";

const EVERY = 2000;
const READS = ["GET", "LIST"];
const rate = (n) => (n >= 100 ? count(n) : n >= 10 ? n.toFixed(1) : n > 0 ? n.toFixed(2) : "0");
const what = (r) => (r.resource ? `${r.resource}${r.subresource ? `/${r.subresource}` : ""}${r.group ? `.${r.group}` : ""}` : r.path);
const asked = (r) => (r.resource ? typed(r) : r.path || "other paths");
const where = (r) => [r.namespace, r.name].filter(Boolean).join("/");
const PHASES = { authentication: 0, authorization: 1, queue: 2, admission: 3, webhooks: 4, expressions: 5, store: 6, etcd: 6 };

export async function show(main, params, { signal }) {
  const charts = {
    rate: new Chart("Requests a second", ["reads", "writes", "refused"], rate),
    latency: new Chart("Time to answer", ["median", "99 of 100"], ms),
    busy: new Chart("At once", ["served", "waiting", "watches"], count),
  };
  const parts = Object.fromEntries(["figures", "phases", "levels", "running", "sorts", "slow", "refused", "open"].map((name) => [name, h("div")]));
  const live = h("span", { class: "live" }, "loading");
  const page = h("div", { class: "page" },
    h("div", { class: "title" }, h("h1", {}, "Now"), live),
    parts.figures, h("div", { class: "grid" }, charts.rate.element, charts.latency.element, charts.busy.element, section(["Where the time goes", "all requests together, between two looks"], parts.phases)),
    section(["Being served and waiting", "by priority level; administrators are exempt"], parts.running),
    h("div", { class: "grid" }, section("Priority levels", parts.levels), section(["Busiest", "requests a second, by verb, resource and answer"], parts.sorts)),
    h("div", { class: "grid" }, section(["Slow", "the last that took 100 ms or more, with where the time went"], parts.slow), section(["Refused", "429, the last ones"], parts.refused)),
    section("Open watches and streams", parts.open),
    command("kubectl get --raw /kubelith/v1/now"), command("kubectl get --raw /debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1"));
  replace(main, page);
  let before;
  await poll(EVERY, signal, async () => {
    let now;
    try {
      now = await get("/kubelith/v1/now", { signal });
    } catch (error) {
      if (signal.aborted) return;
      live.className = "live off";
      live.textContent = "no answer";
      if (error.code === 403) { forbidden(page, error); return false; }
      return;
    }
    live.className = "live on";
    live.textContent = "live";
    draw(charts, parts, now, before);
    before = now;
    // The second look comes soon: rates show only then.
  }, EVERY / 3);
}

function forbidden(page, error) {
  replace(page, h("h1", {}, "Now"), problem(error, [command("kubectl create clusterrole console --verb=get --non-resource-url='/kubelith/v1/*'"),
    command("kubectl create clusterrolebinding console --clusterrole=console --user=YOU")]));
}

const total = (now, wanted) => now.requests.filter(wanted).reduce((sum, r) => sum + r.count, 0);

function draw(charts, parts, now, before) {
  const seconds = before ? (now.time - before.time) / 1000 : 0;
  const per = (of) => (seconds > 0 ? Math.max(0, of(now) - of(before)) / seconds : 0);
  const reads = per((n) => total(n, (r) => READS.includes(r.verb)));
  const writes = per((n) => total(n, (r) => !READS.includes(r.verb) && r.verb !== "WATCH"));
  const refused = per((n) => total(n, (r) => r.code === "429"));
  const [half, most] = latencies(now, before);
  const served = now.levels.reduce((sum, level) => sum + level.executing, 0);
  const waiting = now.levels.reduce((sum, level) => sum + level.waiting, 0);
  const watches = now.longRunning.reduce((sum, r) => sum + r.count, 0);
  if (before) {
    charts.rate.add([reads, writes, refused]);
    charts.latency.add([half, most]);
  }
  charts.busy.add([served, waiting, watches]);
  const cpu = per((n) => n.process.cpuSeconds) * 100;
  replace(parts.figures, h("div", { class: "figures" }, figure(before ? rate(reads + writes) : "–", "requests a second"), figure(ms(most), "99 of 100 answered within"),
    figure(count(served), "being served"), figure(count(waiting), "waiting"), figure(count(watches), "watches and streams"), figure(before ? `${cpu.toFixed(1)} %` : "–", "of a processor"),
    figure(bytes(now.process.residentBytes), "memory"), figure(age(now.time / 1000 - now.process.started), "up")));
  replace(parts.phases, phases(now, before));
  replace(parts.levels, levels(now.levels));
  replace(parts.running, running(now.running));
  replace(parts.sorts, sorts(now, before, seconds));
  replace(parts.slow, slow(now.slow));
  replace(parts.refused, table("Refused", [{ name: "Who", class: "name long", cell: (r) => r.user }, { name: "Verb", cell: (r) => r.verb }, { name: "What", cell: asked },
    { name: "Times", num: true, cell: (r) => count(r.count) }, { name: "Last", tight: true, cell: (r) => `${age((Date.now() - r.last) / 1000)} ago` }], now.refused, "Nobody was sent away."));
  replace(parts.open, table("Open watches", [{ name: "Resource", cell: asked }, { name: "Verb", cell: (r) => r.verb.toLowerCase() }, { name: "Open", num: true, cell: (r) => count(r.count) }],
    now.longRunning.sort((a, b) => b.count - a.count).slice(0, 30), "None."));
}

/** Of the requests since the last look. */
function latencies(now, before) {
  let bounds = [];
  let counts = [];
  for (const [verb, d] of Object.entries(now.latency)) {
    const old = before?.latency[verb];
    bounds = d.bounds;
    d.counts.forEach((n, i) => { counts[i] = (counts[i] || 0) + n - (old?.counts[i] || 0); });
  }
  const all = Object.entries(now.latency).reduce((sum, [verb, d]) => sum + d.count - (before?.latency[verb]?.count || 0), 0);
  const at = (part) => {
    const wanted = part * all;
    let below = 0, from = 0;
    for (const [i, n] of counts.entries()) {
      if (n >= wanted && n > below) return (from + ((bounds[i] - from) * (wanted - below)) / (n - below)) * 1000;
      below = n; from = bounds[i];
    }
    return from * 1000;
  };
  return all > 0 ? [at(0.5), at(0.99)] : [0, 0];
}

function phases(now, before) {
  const spent = now.phases.map((p, i) => ({ ...p, seconds: Math.max(0, p.seconds - (before?.phases[i].seconds || 0)), count: p.count - (before?.phases[i].count || 0) }));
  // Webhooks and expressions are parts of admission: what is left of it is the plugins.
  const of = (name) => spent.find((p) => p.name === name);
  of("admission").seconds = Math.max(0, of("admission").seconds - of("webhooks").seconds - of("expressions").seconds);
  const sum = spent.reduce((total, p) => total + p.seconds, 0);
  const slowest = [...spent].sort((a, b) => b.seconds - a.seconds)[0];
  const line = h("div", { class: "parts", role: "img", "aria-label": spent.map((p) => `${p.name} ${ms(p.seconds * 1000)}`).join(", ") }, spent.map((p) => h("i", { class: `c${PHASES[p.name]}`, "width%": sum ? (p.seconds / sum) * 100 : 0 })));
  return [line, table("Phases", [{ name: "Phase", cell: (p) => [h("span", { class: `dot c${PHASES[p.name]}` }), p.name, p === slowest && p.seconds > 0 ? [" ", tag("slowest", "warn")] : ""] },
    { name: "Times", num: true, cell: (p) => count(p.count) }, { name: "In all", num: true, cell: (p) => ms(p.seconds * 1000) }, { name: "Each", num: true, cell: (p) => ms(p.count ? (p.seconds * 1000) / p.count : 0) }], spent)];
}

function levels(all) {
  return table("Priority levels", [
    { name: "Level", cell: (l) => l.name },
    { name: "Seats in use", cell: (l) => (l.exempt ? `${count(l.seatsInUse)}, no limit` : [`${count(l.seatsInUse)} of ${count(l.seats)}`, bar(l.seats ? l.seatsInUse / l.seats : 0, l.seatsInUse >= l.seats)]) },
    { name: "Served", num: true, cell: (l) => count(l.executing) },
    { name: "Waiting", num: true, cell: (l) => count(l.waiting) },
    { name: "Since the start", num: true, cell: (l) => count(l.dispatched) },
    { name: "Refused", num: true, cell: (l) => count(l.rejected + l.timedOut) },
  ], all, "Priority and fairness is off: plain limits apply.");
}

function running(all) {
  return table("Requests", [
    { name: "Who", class: "name long", cell: (r) => r.user },
    { name: "Verb", tight: true, cell: (r) => r.verb },
    { name: "What", cell: asked }, { name: "Where", class: "name long", cell: where },
    { name: "Level", cell: (r) => r.level },
    { name: "Seats", num: true, cell: (r) => r.seats },
    { name: "State", tight: true, cell: (r) => (r.waiting ? tag("waiting", "warn") : tag("served", "good")) },
    { name: "Waited", num: true, cell: (r) => ms(r.waitedMs) },
    { name: "For", num: true, cell: (r) => ms(r.ageMs) },
  ], all.sort((a, b) => b.ageMs - a.ageMs).slice(0, 100), "Nobody.");
}

function sorts(now, before, seconds) {
  const old = new Map((before?.requests || []).map((r) => [`${r.verb} ${r.group} ${r.resource} ${r.code}`, r.count]));
  const all = now.requests.map((r) => ({ ...r, rate: seconds > 0 ? (r.count - (old.get(`${r.verb} ${r.group} ${r.resource} ${r.code}`) || 0)) / seconds : 0 }));
  all.sort((a, b) => b.rate - a.rate || b.count - a.count);
  return table("Busiest", [{ name: "What", cell: asked }, { name: "Verb", tight: true, cell: (r) => r.verb.toLowerCase() },
    { name: "Answer", tight: true, cell: (r) => tag(r.code, r.code >= "500" ? "bad" : r.code >= "400" ? "warn" : "") },
    { name: "A second", num: true, cell: (r) => rate(r.rate) }, { name: "In all", num: true, cell: (r) => count(r.count) }], all.slice(0, 12));
}

function slow(all) {
  const parts = (r) => Object.entries(r.parts).sort((a, b) => b[1] - a[1]).map(([name, spent]) => `${name.replaceAll("_", " ")} ${ms(spent)}`).join(", ");
  return table("Slow requests", [{ name: "Who", class: "name long", cell: (r) => r.user }, { name: "Request", class: "long", cell: (r) => `${r.verb} ${what(r)} ${where(r)}` }, { name: "Took", num: true, cell: (r) => ms(r.tookMs) },
    { name: "Of which", cell: parts }, { name: "Answer", cell: (r) => r.code }, { name: "When", tight: true, cell: (r) => `${age((Date.now() - r.time) / 1000)} ago` }], all.slice(0, 20), "None.");
}
