// Who comes without a session says who they are here. A token stays in the memory of this page and nowhere else.

import { command, h, problem, replace } from "./dom.js";

export function show(main, enter, error) {
  const said = h("div", {}, error ? problem(error) : "");
  const attempt = async (button, credential) => {
    button.disabled = true;
    replace(said);
    try { await enter(credential); } catch (why) { replace(said, problem(Object.assign(why, { advice: credential.kind === "certificate"
      ? "Give the browser a client certificate that this server trusts and load the page again, or use a token." : "Is the token whole, and still valid?" }))); }
    button.disabled = false;
  };
  const token = h("input", { type: "password", id: "token", autocomplete: "off", spellcheck: "false", required: true });
  const go = h("button", { class: "primary", type: "submit" }, "Sign in");
  const certificate = h("button", { type: "button", onclick: () => attempt(certificate, { kind: "certificate" }) }, "Use the browser’s certificate");
  const form = h("form", { onsubmit: (e) => { e.preventDefault(); const text = token.value.trim(); token.value = ""; if (text) attempt(go, { kind: "token", token: text }); } },
    h("label", { for: "token" }, "Token"), token, h("div", { class: "row" }, go, h("span", { class: "muted" }, "Kept in memory until you leave the page.")));
  replace(main, h("div", { class: "signin" },
    h("div", { class: "mark" }, h("img", { src: "./icon.svg", alt: "" }), h("div", {}, h("h1", {}, "Kubelith"), h("div", { class: "muted" }, "What this API server knows, as far as you may see it"))),
    said, form,
    h("div", { class: "way" }, h("div", {}, "A link signs you in once:"), command("kubectl create --raw /kubelith/v1/links -f /dev/null"),
      h("div", { class: "muted" }, "A start on a terminal prints one, too. A token of a service account:"), command("kubectl create token default")),
    h("div", { class: "way" }, h("div", { class: "row" }, certificate))));
  token.focus();
}
