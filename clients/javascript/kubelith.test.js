import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { ApiError, start } from "./kubelith.js";

const MAPS = "/api/v1/namespaces/default/configmaps";
const map = (name) => ({ apiVersion: "v1", kind: "ConfigMap", metadata: { name } });
const names = async (server) => (await server.request("GET", MAPS)).items.map((item) => item.metadata.name);

let base;
before(async () => (base = await start(["--clock=2026-01-31T12:00:00Z", "--controllers=-*"])));
after(() => base?.stop());

test("a fork goes its own way", async () => {
  const [one, two] = [await base.fork(), await base.fork()];
  await one.request("POST", MAPS, map("a"));
  assert.deepEqual([await names(one), await names(two), await names(base)], [["a"], [], []]);
  const snapshot = await one.snapshot();
  await one.request("DELETE", `${MAPS}/a`);
  await one.reset(snapshot);
  assert.deepEqual(await names(one), ["a"]);
  await Promise.all([one.stop(), two.stop()]);
});

test("faults and the clock", async () => {
  const server = await base.fork();
  const fault = await server.fault({ resource: "configmaps", times: 1, answer: { code: 503 } });
  await assert.rejects(names(server), (error) => error instanceof ApiError && error.code === 503);
  assert.deepEqual([await names(server), await server.hits(fault)], [[], 1]);
  assert.equal(await server.advance("1h"), "2026-01-31T13:00:00Z");
  await server.stop();
});
