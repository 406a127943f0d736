// What the store holds, and a copy of it.

import { bar, bytes, command, count, figure, h, problem, replace, say, section, table, typed } from "./dom.js";
import { find, get, send } from "./api.js";
import { linkTo } from "./explorer.js";

export async function show(main, params, { signal }) {
  const page = h("div", { class: "page" }, h("div", { class: "title" }, h("h1", {}, "Store")), h("div", { class: "muted" }, "Counting…"));
  replace(main, page);
  let s;
  try {
    s = await get("/kubelith/v1/store", { signal });
  } catch (error) {
    if (!signal.aborted) replace(page, h("h1", {}, "Store"), problem(error, error.code === 403 ? command("kubectl create clusterrole console --verb=get --non-resource-url='/kubelith/v1/*'") : undefined));
    return;
  }
  const all = s.resources.filter((r) => r.objects || r.events).sort((a, b) => b.bytes - a.bytes);
  const most = Math.max(1, ...all.map((r) => r.bytes));
  const objects = all.reduce((sum, r) => sum + r.objects, 0);
  const cached = all.reduce((sum, r) => sum + r.bytes, 0);
  const window = all.reduce((sum, r) => sum + r.eventBytes, 0);
  const largest = h("div");
  replace(page,
    h("div", { class: "title" }, h("h1", {}, "Store", h("small", {}, { embedded: "embedded, on disk", memory: "in memory, gone at the end", etcd: "etcd" }[s.backend])), h("div", { class: "actions" }, h("button", { type: "button", onclick: () => show(main, params, { signal }) }, "Count again"))),
    h("div", { class: "figures" }, figure(count(objects), "objects"), figure(bytes(cached), "of objects as JSON"), figure(s.size ? bytes(s.size) : "–", "the store takes"), figure(s.size ? bytes(s.sizeInUse) : "–", "of it in use"),
      figure(count(s.revision), "revision"), figure(count(Math.max(0, s.revision - s.compacted)), "revisions kept"), figure(bytes(window), "of changes for watches"), figure(bytes(s.residentBytes), "memory of the server")),
    h("div", { class: "grid" },
      section("By resource", table("By resource", [{ name: "Resource", cell: (r) => h("a", { href: `#/explore?${new URLSearchParams({ g: r.group, r: r.resource })}` }, typed(r)) }, { name: "Objects", num: true, cell: (r) => count(r.objects) },
        { name: "Size", num: true, tight: true, cell: (r) => bytes(r.bytes) }, { name: "", cell: (r) => bar(r.bytes / most) }, { name: "Changes kept", num: true, cell: (r) => count(r.events) }], all)),
      section(["Largest objects", "as JSON"], largest)),
    section(["Compaction", s.backend === "etcd" ? "by etcd" : "by the server itself"], h("p", {}, `Revisions up to ${count(s.compacted)} are gone. Changes of the last five minutes, and the last hundred of each resource, are kept: watches go on from there, and the History view shows them.`)),
    section("Backup", backup(s, signal)), command("kubectl get --raw /kubelith/v1/store"));
  const links = await Promise.all(s.largest.map((o) => find(o.group, o.resource)));
  replace(largest, table("Largest objects", [{ name: "Object", class: "name", cell: (o) => { const r = links[s.largest.indexOf(o)]; const name = [o.namespace, o.name].filter(Boolean).join("/"); return r ? h("a", { href: linkTo(r, o.namespace, o.name) }, name) : name; } },
    { name: "Resource", cell: typed }, { name: "Size", num: true, tight: true, cell: (o) => bytes(o.bytes) }], s.largest));
}

function backup(s, signal) {
  if (!s.backup) return h("p", { class: "muted" }, s.backend === "etcd" ? "The store is etcd’s: etcdctl snapshot save copies it." : "Only the embedded store is copied.");
  const progress = h("progress", { hidden: true, "aria-label": "Copied" });
  const text = h("span", { class: "muted" });
  const go = h("button", { type: "button" }, "Download a copy");
  go.onclick = async () => {
    go.disabled = true;
    progress.hidden = false;
    progress.removeAttribute("value");
    text.textContent = "The server copies…";
    try {
      const response = await send("/kubelith/v1/backup", { signal });
      const whole = Number(response.headers.get("content-length"));
      const pieces = [];
      let got = 0;
      const reader = response.body.getReader();
      for (;;) {
        const { value, done } = await reader.read();
        if (done) break;
        pieces.push(value);
        got += value.length;
        if (whole) { progress.max = whole; progress.value = got; }
        text.textContent = `${bytes(got)}${whole ? ` of ${bytes(whole)}` : ""}`;
      }
      const name = /filename="([\w.-]+)"/.exec(response.headers.get("content-disposition") || "")?.[1] || "kubelith.db";
      const url = URL.createObjectURL(new Blob(pieces, { type: "application/octet-stream" }));
      h("a", { href: url, download: name }).click();
      setTimeout(() => URL.revokeObjectURL(url), 10000);
      text.textContent = `${name}, ${bytes(got)}`;
      say("Downloaded");
    } catch (error) {
      text.replaceChildren(problem(error));
    }
    progress.hidden = true;
    go.disabled = false;
  };
  return [h("p", {}, "A whole copy of the store as it is now, Secrets included. `kubelith store restore` makes a new data folder of it."), h("div", { class: "row" }, go, progress, text),
    command("kubectl get --raw /kubelith/v1/backup > kubelith.db"), command("kubelith store backup kubelith.db")];
}
