// A Kubernetes API server for tests: `start()` runs the program `kubelith` (of the PATH, or the one that the variable KUBELITH
// names), `fork()` gives each test a server of its own with the same objects.

import { spawn } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import https from "node:https";
import net from "node:net";
import os from "node:os";
import path from "node:path";

const START_MILLISECONDS = 30_000;
const API = "/kubelith/v1";

/** The server refused: `code` and `status` say how and why. */
export class ApiError extends Error {
  constructor(code, status) {
    super(`${code}: ${status?.message ?? status}`);
    this.code = code;
    this.status = status;
  }
}

/** A server that runs. `kubeconfig` is the text of one that gets a client in as administrator. */
export class Server {
  constructor(url, token, authority, kubeconfig) {
    Object.assign(this, { url, token, authority, kubeconfig });
  }

  /** Sends JSON as the administrator and answers what comes back, read if it is JSON. */
  request(method, path, body) {
    const data = body === undefined ? undefined : JSON.stringify(body);
    const headers = { Authorization: `Bearer ${this.token}`, "Content-Type": "application/json" };
    return new Promise((resolve, reject) => {
      const request = https.request(this.url + path, { method, headers, ca: this.authority, agent: false }, (answer) => {
        const pieces = [];
        answer.on("data", (piece) => pieces.push(piece)).on("error", reject);
        answer.on("end", () => {
          const text = Buffer.concat(pieces).toString();
          const read = answer.headers["content-type"]?.startsWith("application/json") ? JSON.parse(text) : text;
          answer.statusCode < 400 ? resolve(read) : reject(new ApiError(answer.statusCode, read));
        });
      });
      request.on("error", reject).end(data);
    });
  }

  /** Takes the state; answers what `reset` and `fork` take. */
  async snapshot() {
    return (await this.request("POST", `${API}/snapshots`)).id;
  }

  reset(snapshot) {
    return this.request("POST", `${API}/reset`, { snapshot });
  }

  /** Another server with the same objects. Neither sees the other from then on. */
  async fork(snapshot) {
    const made = await this.request("POST", `${API}/fork`, snapshot ? { snapshot } : {});
    const fork = new Server(made.server, this.token, made.certificateAuthority, made.kubeconfig);
    fork.stop = () => this.request("DELETE", `${API}/forks/${made.id}`);
    return fork;
  }

  /** Scripts answers: fault({ resource: "pods", verbs: ["update"], times: 3, answer: { code: 409 } }). Answers its id. */
  async fault(fault) {
    return (await this.request("POST", `${API}/faults`, fault)).id;
  }

  async hits(fault) {
    return (await this.request("GET", `${API}/faults/${fault}`)).hits;
  }

  clearFaults() {
    return this.request("DELETE", `${API}/faults`);
  }

  /** Turns the clock, as `1h30m`, of a server that was started with --clock=manual. */
  async advance(duration) {
    return (await this.request("POST", `${API}/clock`, { advance: duration })).now;
  }
}

/** Starts a server in a process of its own; `stop()` ends it. */
export async function start(flags = []) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "kubelith-"));
  const [token, port] = [randomBytes(16).toString("hex"), await freePort()];
  const [data, tokens] = [path.join(folder, "data"), path.join(folder, "tokens.csv")];
  await writeFile(tokens, `${token},admin,admin,"system:masters"\n`);
  const own = ["--storage-backend=memory", "--enable-test-api", `--data-dir=${data}`, `--token-auth-file=${tokens}`];
  own.push("--authorization-mode=Node,RBAC", "--bind-address=127.0.0.1", `--secure-port=${port}`);
  const process_ = spawn(process.env.KUBELITH ?? "kubelith", [...own, ...flags], { stdio: ["ignore", "ignore", "pipe"] });
  let [log, ended] = ["", false];
  process_.stderr.on("data", (text) => (log = (log + text).slice(-10_000)));
  const end = new Promise((resolve) => process_.on("error", resolve).on("exit", resolve)).then(() => (ended = true));
  const stop = async () => {
    process_.kill("SIGKILL");
    await end;
    await rm(folder, { recursive: true, force: true });
  };
  const limit = Date.now() + START_MILLISECONDS;
  for (;;) {
    try {
      const [kubeconfig, authority] = [await readFile(path.join(data, "admin.kubeconfig"), "utf8"), await readFile(path.join(data, "pki", "ca.crt"), "utf8")];
      const server = new Server(`https://127.0.0.1:${port}`, token, authority, kubeconfig);
      await server.request("GET", "/readyz");
      return Object.assign(server, { stop });
    } catch (error) {
      if (ended || Date.now() > limit) {
        await stop();
        throw new Error(`kubelith did not start: ${error.message}\n${log}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().on("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}
