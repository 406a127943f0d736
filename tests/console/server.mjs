// The server under test, as a child process, and requests to it from outside of the browser.

import { spawn } from "node:child_process";
import { mkdtempSync, openSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import https from "node:https";
import net from "node:net";
import tls from "node:tls";
import { tmpdir } from "node:os";
import { join } from "node:path";

const TOKENS = `admintoken,admin,admin-uid,"system:masters"\nalicetoken,alice,alice-uid,"devs"\n`;
const LIMIT = 60_000;

const freePort = () => new Promise((done) => {
  const socket = net.createServer().listen(0, "127.0.0.1", () => {
    const { port } = socket.address();
    socket.close(() => done(port));
  });
});

export class Server {
  static async start(binary, flags = []) {
    const server = new Server();
    server.dir = mkdtempSync(join(tmpdir(), "kubelith-console-"));
    server.port = await freePort();
    server.url = `https://127.0.0.1:${server.port}`;
    writeFileSync(join(server.dir, "tokens.csv"), TOKENS);
    const log = openSync(join(server.dir, "log"), "w");
    server.child = spawn(binary, [`--data-dir=${join(server.dir, "data")}`, `--token-auth-file=${join(server.dir, "tokens.csv")}`, "--bind-address=127.0.0.1",
      `--secure-port=${server.port}`, "--enable-console", ...flags], { stdio: ["ignore", "ignore", log] });
    const end = Date.now() + LIMIT;
    while (!(await server.call("GET", "/readyz").then((a) => a.status === 200, () => false))) {
      if (server.child.exitCode !== null || Date.now() > end) throw new Error(`the server did not start:\n${readFileSync(join(server.dir, "log"), "utf8")}`);
      await new Promise((done) => setTimeout(done, 50));
    }
    return server;
  }

  agent = new https.Agent({ keepAlive: true, rejectUnauthorized: false });

  /** As the administrator, unless `headers` say otherwise. */
  call(method, path, body, headers = { authorization: "Bearer admintoken" }) {
    return new Promise((done, failed) => {
      const text = body === undefined ? undefined : typeof body === "string" ? body : JSON.stringify(body);
      const type = text === undefined ? {} : { "content-type": headers["content-type"] || "application/json", "content-length": Buffer.byteLength(text) };
      const request = https.request(this.url + path, { method, agent: this.agent, headers: { ...headers, ...type } }, (response) => {
        const parts = [];
        response.on("data", (part) => parts.push(part));
        response.on("end", () => {
          const all = Buffer.concat(parts);
          let json;
          try { json = JSON.parse(all); } catch { /* text */ }
          done({ status: response.statusCode, headers: response.headers, bytes: all, text: all.toString(), json });
        });
      });
      request.on("error", failed);
      request.end(text);
    });
  }

  /** Must be accepted. */
  async make(path, object) {
    const answer = await this.call("POST", path, object);
    if (answer.status >= 300) throw new Error(`POST ${path}: ${answer.status} ${answer.text}`);
    return answer.json;
  }

  async link() {
    return this.url + (await this.make("/kubelith/v1/links")).path;
  }

  /** The same server, reached by who has the administrator's certificate: a URL. */
  async withCertificate() {
    const config = readFileSync(join(this.dir, "data", "admin.kubeconfig"), "utf8");
    const pem = (name) => Buffer.from(config.match(new RegExp(`${name}-data: *(\\S+)`))[1], "base64");
    const identity = { cert: pem("client-certificate"), key: pem("client-key") };
    const pki = (name) => readFileSync(join(this.dir, "data", "pki", name));
    // Its own certificate is of no account: the browser takes any.
    const proxy = tls.createServer({ cert: pki("apiserver.crt"), key: pki("apiserver.key"), ALPNProtocols: ["http/1.1"] }, (near) => {
      const far = tls.connect({ host: "127.0.0.1", port: this.port, rejectUnauthorized: false, ALPNProtocols: ["http/1.1"], ...identity });
      for (const [from, to] of [[near, far], [far, near]]) {
        from.on("error", () => to.destroy());
        from.pipe(to);
      }
    });
    await new Promise((done) => proxy.listen(0, "127.0.0.1", done));
    this.proxies.push(proxy);
    return `https://127.0.0.1:${proxy.address().port}`;
  }

  proxies = [];

  async stop() {
    this.agent.destroy();
    for (const proxy of this.proxies) proxy.close();
    const ended = new Promise((done) => this.child.once("exit", done));
    this.child.kill("SIGTERM");
    await ended;
    rmSync(this.dir, { recursive: true, force: true });
  }
}
