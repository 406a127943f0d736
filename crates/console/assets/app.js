// The frame of the page: who is signed in, which view is shown, and the way between them.

import { h, problem, replace } from "./dom.js";
import { send, sessionKey, signIn, signedInBy, whoAmI } from "./api.js";
import * as signin from "./signin.js";
import * as explorer from "./explorer.js";
import * as object from "./object.js";
import * as now from "./now.js";
import * as access from "./access.js";
import * as extensions from "./extensions.js";
import * as store from "./store.js";
import * as history from "./history.js";

const VIEWS = [["explore", "Explorer", explorer], ["now", "Now", now], ["access", "Access", access], ["extensions", "Extensions", extensions],
  ["store", "Store", store], ["history", "History", history]];
const main = document.getElementById("main");
let user;
let leaving = new AbortController();

function header(current) {
  const link = ([path, name]) => h("a", { href: `#/${path}`, "aria-current": path === current ? "page" : null }, name);
  const top = document.getElementById("top");
  if (!user) return void replace(top);
  replace(top,
    h("a", { class: "brand", href: "#/explore" }, h("img", { src: "./icon.svg", alt: "" }), "Kubelith"),
    h("nav", { class: "views", "aria-label": "Views" }, VIEWS.map(link)),
    h("div", { class: "who" }, h("b", { title: (user.groups || []).join(", ") }, user.username),
      h("button", { type: "button", class: "plain", onclick: signOut }, "Sign out")));
}

async function signOut() {
  if (signedInBy() === "session") await send("/console/session", { method: "DELETE" }).catch(() => {});
  signIn({ kind: "none" });
  user = undefined;
  location.hash = "#/";
  show();
}

/** Tries a credential; the user that it belongs to, or an error. */
async function enter(credential) {
  signIn(credential);
  try {
    const found = await whoAmI();
    if (found.username === "system:anonymous") throw Object.assign(new Error("The server does not know who you are."), { title: "Not signed in" });
    user = found;
  } catch (error) {
    signIn({ kind: "none" });
    throw error;
  }
  if (!location.hash.startsWith("#/") || location.hash === "#/") history_(`#/explore`);
  show();
}

function history_(hash) { window.history.replaceState(null, "", hash); }

async function show() {
  leaving.abort();
  leaving = new AbortController();
  const { signal } = leaving;
  const [path, search] = location.hash.replace(/^#\/?/, "").split("?");
  if (!user) {
    header();
    document.title = "Sign in – Kubelith";
    return signin.show(main, enter);
  }
  const view = path === "object" ? ["explore", "Explorer", object] : VIEWS.find(([name]) => name === path) || VIEWS[0];
  header(view[0]);
  document.title = `${view[1]} – Kubelith`;
  replace(main);
  try {
    await view[2].show(main, new URLSearchParams(search), { signal, user });
  } catch (error) {
    if (!signal.aborted) replace(main, h("div", { class: "page" }, problem(error)));
  }
}

addEventListener("hashchange", show);
addEventListener("signedout", () => { if (!user) return; user = undefined; signIn({ kind: "none" }); show(); });
// Where to go without a mouse: g and a letter (x for extensions), / for the first field.
let g = false;
addEventListener("keydown", (e) => {
  if (!user || e.ctrlKey || e.metaKey || e.altKey || e.target.closest("input, textarea, select, dialog")) return;
  if (e.key === "/") { const field = main.querySelector("input[type=search]"); if (field) { e.preventDefault(); field.focus(); } }
  const to = g && VIEWS.find(([path]) => (path === "extensions" ? "x" : path[0]) === e.key);
  if (to) location.hash = `#/${to[0]}`;
  g = e.key === "g";
});

async function start() {
  header();
  const code = new URLSearchParams(location.hash.slice(1)).get("code");
  if (code) {
    // Out of the address and of the history before anything else.
    history_("#/");
    try {
      const answer = await send("/console/session", { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify({ code }) });
      return await enter({ kind: "session", key: (await answer.json()).key });
    } catch (error) {
      return signin.show(main, enter, error);
    }
  }
  const key = sessionKey();
  // A session of before, or a certificate that the browser has shown.
  for (const credential of [key && { kind: "session", key }, { kind: "certificate" }].filter(Boolean)) {
    try { return await enter(credential); } catch { /* then by hand */ }
  }
  show();
}

start();
