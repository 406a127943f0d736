// The console in a real browser: `cargo xtask console`. Needs a server to start and a folder for screenshots.
//
//   node run.mjs --binary target/debug/kubelith --shots target/console [--assets crates/console/assets] [--many PODS] [part of a name]

import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { launch, Tab } from "./browser.mjs";
import { CHECKS } from "./checks.mjs";
import { furnish } from "./fixtures.mjs";
import { many } from "./many.mjs";
import { Server } from "./server.mjs";

const AT_ONCE = 3;
const { values, positionals } = parseArgs({ allowPositionals: true, options: { binary: { type: "string" }, shots: { type: "string" }, assets: { type: "string" }, many: { type: "string" } } });
mkdirSync(values.shots, { recursive: true });
const began = Date.now();
const [server, browser] = await Promise.all([Server.start(values.binary), launch()]);
let passed = 0, failed = 0;
try {
  if (values.many) await many(server, () => Tab.open(browser, server, { assets: values.assets }), Number(values.many));
  else await furnish(server);
  const context = {
    server,
    open: (options) => Tab.open(browser, server, { assets: values.assets, ...options }),
    shot: (tab, name) => tab.page.screenshot({ path: join(values.shots, `${name}.png`) }),
  };
  const wanted = CHECKS.filter(([name]) => !values.many && (!positionals.length || positionals.some((part) => name.includes(part))));
  const next = async () => {
    const [name, check] = wanted.shift();
    const start = Date.now();
    const tabs = [];
    const open = async (options) => { const tab = await context.open(options); tabs.push(tab); return tab; };
    try {
      await check({ ...context, open });
      for (const tab of tabs) await tab.check();
      passed += 1;
      console.log(`ok   ${name} (${Date.now() - start} ms)`);
    } catch (error) {
      failed += 1;
      console.log(`FAIL ${name}: ${error.stack || error}`);
      for (const tab of tabs) await context.shot(tab, `failed-${name.replaceAll(/\W+/g, "-")}`).catch(() => {});
    }
    for (const tab of tabs) await tab.close().catch(() => {});
  };
  // Much of a check is waiting.
  await Promise.all(Array.from({ length: AT_ONCE }, async () => { while (wanted.length) await next(); }));
} finally {
  await browser.close();
  await server.stop();
}
console.log(`took ${((Date.now() - began) / 1000).toFixed(1)} s, screenshots in ${values.shots}`);
console.log(`${passed} passed, ${failed} failed`);
process.exit(failed ? 1 : 0);
