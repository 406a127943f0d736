// A headless Chromium, with pages that notice what must not happen: errors, requests to others, scripts that data brought in.

import chromium from "@sparticuz/chromium";
import puppeteer from "puppeteer-core";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const ARGS = ["--no-sandbox", "--no-zygote", "--disable-gpu", "--disable-dev-shm-usage", "--font-render-hinting=none"];
/** Longer than anything takes on a busy machine. */
export const LIMIT = 20_000;

export async function launch() {
  const executablePath = await chromium.executablePath();
  const options = { executablePath, headless: "shell", acceptInsecureCerts: true, args: ARGS };
  try {
    return await puppeteer.launch(options);
  } catch {
    // A system without the libraries of a browser: those of the package do.
    const libraries = join(executablePath, "..", "al2023", "lib");
    return puppeteer.launch({ ...options, env: { ...process.env, LD_LIBRARY_PATH: libraries } });
  }
}

export class Tab {
  /** Its own cookies and storage. `assets` is a folder whose files are taken instead of the server's. */
  static async open(browser, server, { assets, scheme = "light", width = 1280, height = 860, expected = [], url = server.url } = {}) {
    const tab = new Tab();
    Object.assign(tab, { server, url, expected, problems: [], context: await browser.createBrowserContext() });
    const page = tab.page = await tab.context.newPage();
    page.setDefaultTimeout(LIMIT);
    await page.setViewport({ width, height });
    await page.emulateMediaFeatures([{ name: "prefers-color-scheme", value: scheme }, { name: "prefers-reduced-motion", value: "reduce" }]);
    await page.evaluateOnNewDocument(() => { window.xss = 0; });
    page.on("pageerror", (error) => tab.problems.push(`error: ${error.message}`));
    page.on("dialog", (box) => { tab.problems.push(`dialog: ${box.message()}`); box.dismiss(); });
    page.on("console", (line) => {
      if (!["error", "warn"].includes(line.type())) return;
      // Answers that are refused are part of the tests; the browser reports each.
      const text = line.text();
      if (!/Failed to load resource: the server responded with a status of (400|401|403|404|409|410|422)/.test(text)) tab.problems.push(`console: ${text}`);
    });
    if (assets) await page.setRequestInterception(true);
    page.on("request", (request) => {
      const url = new URL(request.url());
      const own = url.origin === tab.url || url.protocol === "blob:";
      if (!own) tab.problems.push(`request to ${url.href}`);
      if (!assets) return;
      const file = join(assets, url.pathname === "/console/" ? "index.html" : url.pathname.split("/").pop());
      if (!own || !url.pathname.startsWith("/console/") || url.pathname.endsWith("session") || !existsSync(file)) return void request.continue();
      const type = { html: "text/html", css: "text/css", js: "text/javascript", svg: "image/svg+xml" }[file.split(".").pop()];
      request.respond({ body: readFileSync(file), contentType: `${type}; charset=utf-8`, headers: { "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; require-trusted-types-for 'script'; trusted-types 'none'" } });
    });
    return tab;
  }

  async go(path) { await this.page.goto(this.url + path); }
  /** Another view, without loading the page anew. */
  async view(hash) { await this.page.evaluate((to) => { location.hash = to; }, hash); }

  async signIn(token) {
    await this.go("/console/");
    await this.page.waitForSelector("#token");
    await this.page.type("#token", token);
    await this.page.keyboard.press("Enter");
    await this.page.waitForSelector("nav.views");
  }

  async text(selector = "body") { return this.page.$eval(selector, (e) => e.innerText); }
  /** Waits until the page says this. */
  async says(text, selector = "body") {
    try {
      await this.page.waitForFunction((s, t) => [...document.querySelectorAll(s)].some((e) => e.innerText.includes(t)), {}, selector, text);
    } catch {
      throw new Error(`the page does not say ${JSON.stringify(text)} but:\n${(await this.text()).slice(0, 1500)}`);
    }
  }
  async saysNot(text, selector = "body") {
    await this.page.waitForFunction((s, t) => ![...document.querySelectorAll(s)].some((e) => e.innerText.includes(t)), {}, selector, text);
  }
  async press(name, role = "button") {
    const found = await this.page.waitForSelector(`::-p-aria([name="${name}"][role="${role}"])`);
    await found.click();
  }

  /** Rules of accessibility that the page breaks. */
  async axe(name) {
    // In the page's own world the policy of the page would refuse it.
    const session = await this.page.createCDPSession();
    const { frameTree } = await session.send("Page.getFrameTree");
    const { executionContextId } = await session.send("Page.createIsolatedWorld", { frameId: frameTree.frame.id, worldName: "axe" });
    await session.send("Runtime.evaluate", { contextId: executionContextId, expression: AXE });
    const run = "axe.run(document, { resultTypes: ['violations'], runOnly: ['wcag2a', 'wcag2aa', 'wcag21a', 'wcag21aa', 'best-practice'] })"
      + ".then((r) => JSON.stringify(r.violations.map((v) => v.id + ': ' + v.nodes.slice(0, 3).map((n) => n.target + ' ' + n.failureSummary).join('; '))))";
    const { result, exceptionDetails } = await session.send("Runtime.evaluate", { contextId: executionContextId, expression: run, awaitPromise: true });
    await session.detach();
    if (exceptionDetails) throw new Error(`axe: ${exceptionDetails.text} ${exceptionDetails.exception?.description}`);
    for (const violation of JSON.parse(result.value)) this.problems.push(`${name}: ${violation}`);
  }

  /** Fails if anything happened that must not. */
  async check() {
    if (await this.page.evaluate(() => window.xss)) this.problems.push("a script that came with data ran");
    const all = this.problems.splice(0).filter((p) => !this.expected.some((e) => e.test(p)));
    if (all.length) throw new Error(all.join("\n"));
  }

  async close() { await this.context.close(); }
}
