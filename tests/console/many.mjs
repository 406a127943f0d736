// Measures the console with many objects: `cargo xtask console --many 100000`, best with an optimised server (`--binary`).

import { readFileSync } from "node:fs";

const AT_ONCE = 64;
const WATCHED_SECONDS = 20;

const pod = (i) => ({ apiVersion: "v1", kind: "Pod", metadata: { name: `pod-${String(i).padStart(6, "0")}`, labels: { app: `app-${i % 100}`, tier: "web" } },
  spec: { automountServiceAccountToken: false, nodeName: `node-${i % 1000}`, containers: [{ name: "web", image: "registry.example/web:1.4", resources: { requests: { cpu: "100m", memory: "128Mi" } } }] } });

async function fill(server, count) {
  await server.make("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "many" } });
  let next = 0;
  const began = Date.now();
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    while (next < count) {
      const i = next;
      next += 1;
      await server.make("/api/v1/namespaces/many/pods", pod(i));
    }
  }));
  console.log(`${count} pods made in ${((Date.now() - began) / 1000).toFixed(0)} s`);
}

const cpu = async (server) => Number(/^process_cpu_seconds_total (\S+)/m.exec((await server.call("GET", "/metrics")).text)[1]);

/** Memory that the page's process has for itself, in MB. */
async function memory(tab) {
  const session = await tab.page.browser().target().createCDPSession();
  const { processInfo } = await session.send("SystemInfo.getProcessInfo");
  const own = processInfo.filter((p) => p.type === "renderer").map((p) => Number(/RssAnon:\s+(\d+)/.exec(readFileSync(`/proc/${p.id}/status`, "utf8"))[1]) / 1024);
  return { process: Math.max(...own).toFixed(0), heap: ((await tab.page.metrics()).JSHeapUsedSize / 1e6).toFixed(1) };
}

export async function many(server, open, count) {
  await fill(server, count);
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.says("live", ".live");
  await tab.view("#/store");
  await tab.says("pods", "main table");
  const times = [];
  for (let i = 0; i < 5; i += 1) {
    await tab.view("#/history");
    await tab.says("still gone");
    const took = await tab.page.evaluate(() => new Promise((done) => {
      const began = performance.now();
      location.hash = "#/explore?r=pods";
      const look = () => (document.querySelectorAll(".list tbody tr").length >= 250 ? done(performance.now() - began) : setTimeout(look, 2));
      look();
    }));
    times.push(took);
  }
  times.sort((a, b) => a - b);
  console.log(`explorer opens in ${times[2].toFixed(0)} ms (of 5: ${times.map((t) => t.toFixed(0)).join(", ")})`);
  const began = Date.now();
  let changed = 0;
  while (Date.now() - began < WATCHED_SECONDS * 1000) {
    await Promise.all(Array.from({ length: 16 }, () => server.call("PATCH", `/api/v1/namespaces/many/pods/${pod(Math.floor(Math.random() * count)).metadata.name}`, { metadata: { annotations: { n: String(changed += 1) } } },
      { authorization: "Bearer admintoken", "content-type": "application/merge-patch+json" })));
  }
  const { process, heap } = await memory(tab);
  console.log(`after ${changed} changes while it was open: process ${process} MB of its own, ${heap} MB of objects`);
  await tab.view("#/now");
  await tab.says("requests a second", ".figures");
  await new Promise((done) => setTimeout(done, 5000));
  const before = await cpu(server);
  await new Promise((done) => setTimeout(done, WATCHED_SECONDS * 1000));
  const open_ = (await cpu(server)) - before;
  await tab.view("#/history");
  await tab.says("still gone");
  await new Promise((done) => setTimeout(done, 2000));
  const idle = await cpu(server);
  await new Promise((done) => setTimeout(done, WATCHED_SECONDS * 1000));
  const closed = (await cpu(server)) - idle;
  const part = (seconds) => `${((seconds / WATCHED_SECONDS) * 100).toFixed(2)} %`;
  console.log(`server with Now open ${part(open_)} of a core, without ${part(closed)}: ${part(open_ - closed)} for it`);
  await tab.check();
}
