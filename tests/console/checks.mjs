// What the console must do, one function each.

import assert from "node:assert/strict";
import { XSS } from "./fixtures.mjs";

const VIEWS = [["explore", "Explorer"], ["now", "Now"], ["access", "Access"], ["extensions", "Extensions"], ["store", "Store"], ["history", "History"]];
const DONE = { explore: ["live", ".live"], now: ["requests a second", ".figures"], access: ["secrets", "main table"], extensions: ["small-widgets", "main table"], store: ["configmaps", "main table"], history: ["that are still gone", "main"] };

const storage = (tab) => tab.page.evaluate(() => JSON.stringify([Object.entries(localStorage), Object.entries(sessionStorage), document.cookie]));
const cell = (tab, text) => tab.page.waitForSelector(`::-p-xpath(//td[normalize-space()="${text}"])`);

async function signedOut({ open, shot }) {
  const tab = await open();
  for (const [path] of VIEWS) {
    await tab.go(`/console/#/${path}`);
    await tab.says("Kept in memory until you leave the page.");
    assert.equal(await tab.page.$("nav.views"), null);
  }
  await tab.axe("signed out");
  await shot(tab, "signin");
  await tab.page.type("#token", "wrong");
  await tab.page.keyboard.press("Enter");
  await tab.says("Not signed in");
}

async function byLink({ open, server }) {
  const tab = await open();
  const link = await server.link();
  await tab.page.goto(link);
  await tab.page.waitForSelector("nav.views");
  await tab.says("admin", ".who");
  assert.ok(!(await tab.page.evaluate(() => location.href)).includes("code"), "the code stays in the address");
  assert.equal(JSON.parse(await storage(tab))[2], "", "scripts see the cookie");
  const cookies = await tab.context.cookies();
  assert.equal(cookies.length, 1);
  const [cookie] = cookies;
  assert.deepEqual([cookie.httpOnly, cookie.secure, cookie.sameSite, cookie.path], [true, true, "Strict", "/"]);
  // The cookie alone is nobody, with whatever the session's key is not.
  for (const headers of [{}, { "x-kubelith-console": "1" }, { "x-kubelith-console": "1", "sec-fetch-site": "cross-site" }]) {
    const answer = await server.call("GET", "/api/v1/secrets", undefined, { cookie: `${cookie.name}=${cookie.value}`, ...headers });
    assert.ok([401, 403].includes(answer.status), `${answer.status} with ${JSON.stringify(headers)}`);
  }
  await tab.page.reload();
  await tab.page.waitForSelector("nav.views");
  const second = await open();
  await second.page.goto(link);
  await second.says("links are good once");
  await tab.press("Sign out");
  await tab.page.waitForSelector("#token");
  assert.deepEqual(await tab.context.cookies(), []);
  await tab.page.reload();
  await tab.page.waitForSelector("#token");
}

async function fixation({ open, server }) {
  const tab = await open();
  await tab.page.goto(await server.link());
  await tab.page.waitForSelector("nav.views");
  const [first] = await tab.context.cookies();
  // Who planted a session before does not have the one that comes after it.
  await tab.page.goto("about:blank");
  await tab.page.goto(await server.link());
  await tab.page.waitForSelector("nav.views");
  const after = (await tab.context.cookies()).find((c) => c.name === first.name);
  assert.notEqual(after.value, first.value);
}

async function byToken({ open }) {
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.says("live", ".live");
  assert.ok(!(await tab.page.evaluate(() => location.href)).includes("token"));
  assert.equal(await storage(tab), `[[],[],""]`, "something is stored");
  await tab.page.reload();
  await tab.page.waitForSelector("#token");
}

async function byCertificate({ open, server, shot }) {
  // A browser without a window asks nobody which certificate to show: the handshake with it is done beside the browser.
  const url = await server.withCertificate();
  const tab = await open({ url });
  await tab.go("/console/");
  await tab.page.waitForSelector("nav.views");
  await tab.says("kubernetes-admin", ".who");
  await tab.says("live", ".live");
  assert.equal(await storage(tab), `[[],[],""]`, "something is stored");
  await shot(tab, "certificate");
  await tab.press("Sign out");
  await tab.press("Use the browser’s certificate");
  await tab.says("live", ".live");
  // Who has none is told what to do.
  const other = await open();
  await other.go("/console/");
  await other.press("Use the browser’s certificate");
  await other.says("Give the browser a client certificate");
}

async function administrator({ open, shot }) {
  const tab = await open();
  await tab.signIn("admintoken");
  for (const [path, name] of VIEWS) {
    await tab.view(path === "explore" ? "#/explore?r=pods&ns=dev" : `#/${path}`);
    await tab.says(...DONE[path]);
    await tab.says("kubectl", ".cmd");
    // A rate needs two looks, a line two rates.
    if (path === "now") await tab.page.waitForSelector(".chart path.s1");
    assert.equal(await tab.page.$eval("nav.views [aria-current]", (e) => e.innerText), name);
    await tab.axe(name);
    await shot(tab, `admin-${path}`);
  }
}

async function appearances({ open, shot }) {
  const dark = await open({ scheme: "dark" });
  const phone = await open({ width: 390, height: 780 });
  for (const [tab, name] of [[dark, "dark"], [phone, "phone"]]) {
    await tab.signIn("admintoken");
    for (const [path, hash] of [["explore", "#/explore?r=pods&ns=dev"], ["now", "#/now"], ["object", "#/object?v=v1&r=pods&ns=dev&name=web-7c9f-a"]]) {
      await tab.view(hash);
      await tab.says(...(DONE[path] || ["kubelet", ".legend"]));
      if (path === "object") await tab.axe(`${name} ${path}`);
      await shot(tab, `${name}-${path}`);
      const wide = await tab.page.evaluate(() => document.documentElement.scrollWidth > innerWidth);
      assert.ok(!wide, `${name} ${path} is wider than the screen`);
    }
  }
}

async function restricted({ open, shot }) {
  const tab = await open();
  await tab.signIn("alicetoken");
  await tab.says("Not allowed");
  await tab.says("alice", ".who");
  await shot(tab, "restricted-explore");
  await tab.view("#/explore?r=pods&ns=dev");
  await cell(tab, "web-7c9f-a");
  await tab.view("#/explore?r=secrets&ns=dev");
  await tab.says("cannot list resource \"secrets\"");
  for (const path of ["now", "store", "history", "extensions", "access"]) {
    await tab.view(`#/${path}`);
    await tab.says(path === "access" ? "Turned away lately" : "Not allowed");
    await tab.says("alice", ".note, .who");
    if (path === "now") await tab.axe("restricted");
    assert.ok(!(await tab.text()).includes("system:kube-scheduler"));
  }
  await tab.view("#/object?v=v1&r=pods&ns=dev&name=web-7c9f-a");
  await tab.says("kubelet", ".legend");
  await tab.press("Events", "tab");
  await tab.says("Started", "main table");
}

async function live({ open, server }) {
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.view("#/explore?r=configmaps&ns=prod");
  await tab.says("live", ".live");
  await server.make("/api/v1/namespaces/prod/configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "fresh", labels: { a: "b" } }, data: { a: "1" } });
  await cell(tab, "fresh");
  await tab.view("#/explore?r=configmaps&ns=prod&labels=a%3Dc");
  await tab.says("No object matches.");
  await tab.view("#/object?v=v1&r=configmaps&ns=prod&name=fresh");
  await tab.says("a: \"1\"", ".yaml");
  await server.call("PATCH", "/api/v1/namespaces/prod/configmaps/fresh", { data: { a: "two" } }, { authorization: "Bearer admintoken", "content-type": "application/merge-patch+json" });
  await tab.says("a: two", ".yaml");
  await tab.view("#/explore?r=configmaps&ns=prod");
  await cell(tab, "fresh");
  await server.call("DELETE", "/api/v1/namespaces/prod/configmaps/fresh");
  await tab.saysNot("fresh", "main table");
}

async function paging({ open, server }) {
  const made = [];
  for (let i = 0; i < 260; i += 1) made.push(server.make("/api/v1/namespaces/prod/secrets", { apiVersion: "v1", kind: "Secret", metadata: { name: `s-${String(i).padStart(3, "0")}` } }));
  await Promise.all(made);
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.view("#/explore?r=secrets&ns=prod");
  await tab.says("1–250 of 260", ".foot");
  await tab.press("Next");
  await tab.says("251–260", ".foot");
  await cell(tab, "s-259");
  assert.equal(await tab.page.$$eval("tbody tr", (rows) => rows.length), 10, "only one page is held");
  await tab.press("Previous");
  await cell(tab, "s-000");
}

async function object({ open, shot, server }) {
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.view("#/object?g=apps&v=v1&r=deployments&ns=dev&name=web");
  await tab.says("helm", ".legend");
  await tab.says("replicas: 3", ".yaml");
  await tab.axe("object");
  await shot(tab, "object-yaml");
  await tab.press("Owners", "tab");
  await tab.says("web-7c9f-c", ".tree");
  await shot(tab, "object-owners");
  await tab.press("Edit", "tab");
  const change = (from, to) => tab.page.$eval("textarea.code", (e, a, b) => { e.value = e.value.replace(a, b); e.dispatchEvent(new Event("input")); }, from, to);
  await change("replicas: 3", "replicas: many");
  await tab.press("Check on the server");
  await tab.page.waitForSelector(".note.bad");
  await change("replicas: many", "replicas: 5");
  await tab.press("Check on the server");
  await tab.says("+   replicas: 5", ".diff .add");
  await tab.axe("edit");
  await shot(tab, "object-edit");
  const stored = async () => (await server.call("GET", "/apis/apps/v1/namespaces/dev/deployments/web")).json.spec.replicas;
  assert.equal(await stored(), 3, "a check stores nothing");
  await tab.press("Save");
  await tab.says("Saved", "#said");
  assert.equal(await stored(), 5);
  await tab.press("History", "tab");
  await tab.says("+   replicas: 5", ".diff .add");
  await tab.says("by kubelith-console");
  await shot(tab, "object-history");
}

async function deletion({ open, shot, server }) {
  await server.make("/api/v1/namespaces/prod/configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "parent" }, data: { keep: "me" } });
  const parent = (await server.call("GET", "/api/v1/namespaces/prod/configmaps/parent")).json;
  await server.make("/api/v1/namespaces/prod/configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: "child", ownerReferences: [{ apiVersion: "v1", kind: "ConfigMap", name: "parent", uid: parent.metadata.uid }] } });
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.view("#/object?v=v1&r=configmaps&ns=prod&name=parent");
  await tab.press("Delete…");
  await tab.says("child", "dialog .tree");
  await tab.says("kubectl delete configmaps parent -n prod --cascade=background", "dialog .cmd");
  await tab.axe("delete");
  await shot(tab, "delete");
  await tab.page.evaluate(() => document.querySelector("dialog button.danger").click());
  await tab.says("deleted", ".live");
  await tab.view("#/history?r=configmaps&ns=prod");
  await tab.says("prod/parent", "main table");
  await shot(tab, "history");
  await tab.page.evaluate(() => [...document.querySelectorAll("main td a")].find((a) => a.innerText === "prod/parent").click());
  await tab.press("Make it again");
  await tab.says("It is back, with a new uid");
  assert.equal((await server.call("GET", "/api/v1/namespaces/prod/configmaps/parent")).json.data.keep, "me");
}

async function hostile({ open, shot }) {
  const tab = await open();
  await tab.signIn("admintoken");
  for (const [hash, selector] of [
    ["#/object?v=v1&r=pods&ns=dev&name=web-7c9f-a", ".yaml"],
    ["#/object?v=v1&r=pods&ns=dev&name=web-7c9f-a&tab=Events", "main table"],
    ["#/object?v=v1&r=pods&ns=dev&name=web-7c9f-a&tab=History", ".diff"],
    ["#/explore?g=example.com&r=widgets&ns=dev", "main table"],
    ["#/explore?r=events&ns=dev", "main table"],
    ["#/access", "main table"],
  ]) {
    await tab.view(hash);
    await tab.says("onerror=", selector);
  }
  await shot(tab, "hostile");
  await tab.view(`#/object?v=v1&r=pods&ns=dev&name=${encodeURIComponent(XSS)}`);
  await tab.says("onerror=", "h1");
  await tab.view(`#/explore?r=${encodeURIComponent(XSS)}`);
  await tab.says("Nothing serves");
  assert.equal(await tab.page.$("main img[src=x], main script"), null);
}

async function access({ open, shot }) {
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.view("#/access?user=alice&groups=devs&verb=list&what=pods&ns=dev&ask=1");
  await tab.says("Yes.", ".note.good");
  await tab.says("RBAC: allowed by RoleBinding \"devs-read/dev\" of Role \"reader\" to Group \"devs\"");
  await tab.says("The rule: get, list, watch: pods, configmaps, events of core");
  await tab.press("Who may?");
  await tab.says("system:kube-scheduler", "main table");
  await shot(tab, "access");
  await tab.view("#/access?user=alice&groups=devs&verb=delete&what=pods&ns=dev&ask=1");
  await tab.says("No.", ".note.bad");
}

async function extensions({ open }) {
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.view("#/extensions");
  await tab.says("failed to call webhook", "main table");
  await tab.says("widgets are small", "main table");
  await tab.says("widgets.checks.example.com", "main table");
  await tab.says("not Available", "main table");
  await tab.press("Costs of widgets.example.com", "link");
  await tab.says("self.size < 100", "main table");
  await tab.says("10,000,000", "main table");
}

async function backup({ open }) {
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.view("#/store");
  await tab.press("Download a copy");
  await tab.says(".db, ");
}

async function keyboard({ open }) {
  const tab = await open();
  await tab.signIn("admintoken");
  await tab.says("live", ".live");
  await tab.page.evaluate(() => document.activeElement.blur());
  await tab.page.keyboard.type("gn");
  await tab.says("requests a second", ".figures");
  await tab.page.keyboard.type("ge");
  await tab.page.waitForSelector(".kinds");
  await tab.page.evaluate(() => document.activeElement.blur());
  await tab.page.keyboard.type("/widg");
  await tab.page.keyboard.press("Enter");
  await cell(tab, "first");
}

async function files({ server }) {
  const strangers = {};
  const page = await server.call("GET", "/console/", undefined, strangers);
  for (const [name, value] of [["x-frame-options", "DENY"], ["x-content-type-options", "nosniff"], ["referrer-policy", "no-referrer"]]) assert.equal(page.headers[name], value);
  assert.match(page.headers["content-security-policy"], /default-src 'none'.*frame-ancestors 'none'.*trusted-types 'none'/);
  let size = 0, sent = 0;
  const names = ["", ...page.text.matchAll(/(?:href|src)="\.\/([^"]+)"/g)].map((m) => m[1] ?? "");
  for (let i = 0; i < names.length; i += 1) {
    const plain = await server.call("GET", `/console/${names[i]}`, undefined, strangers);
    const packed = await server.call("GET", `/console/${names[i]}`, undefined, { "accept-encoding": "gzip, br" });
    assert.deepEqual([plain.status, packed.headers["content-encoding"], packed.headers.etag], [200, "gzip", plain.headers.etag], names[i]);
    assert.equal((await server.call("GET", `/console/${names[i]}`, undefined, { "if-none-match": plain.headers.etag })).status, 304);
    size += plain.bytes.length;
    sent += packed.bytes.length;
    for (const [, name] of plain.text.matchAll(/from "\.\/([\w.]+)"/g)) if (!names.includes(name)) names.push(name);
  }
  console.log(`     ${names.length} files, ${size} bytes, ${sent} on the wire`);
  assert.ok(size < 200_000);
}

export const CHECKS = [["files", files], ["signed out", signedOut], ["sign in by link", byLink], ["session fixation", fixation], ["sign in by token", byToken], ["sign in by certificate", byCertificate], ["administrator, every view", administrator],
  ["dark, and on a phone", appearances], ["restricted user, every view", restricted], ["live updates", live], ["paging", paging], ["object, edit", object], ["deletion and undelete", deletion],
  ["hostile texts", hostile], ["access explained", access], ["extensions", extensions], ["backup", backup], ["keyboard", keyboard]];
