// Requests to the server that the page came from, and to no other. The credential is held here, in memory.

const TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json";
const DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json";
// Alone it opens nothing: it belongs to a cookie that scripts cannot read.
const KEY = "kubelith-session-key";

let credential = { kind: "none" };
let resources;

export class ApiError extends Error {
  constructor(code, status, text) {
    super(status?.message || text || `The server answered ${code}`);
    this.code = code;
    this.reason = status?.reason || "";
    this.causes = status?.details?.causes || [];
    this.title = { 401: "Not signed in", 403: "Not allowed", 404: "Not found", 409: "Conflict", 410: "Too old", 422: "Not valid", 429: "Too many requests" }[code]
      || (code >= 500 ? "The server failed" : code ? "The request was refused" : "No answer");
    this.advice = {
      401: "Sign in again.",
      403: "Somebody who may grant it can give you a role with this right; the Access view shows which rules there are.",
      409: "Somebody changed the object in the meantime: load it again and repeat your change.",
      410: "The server no longer has the state that this page was showing: load it again.",
      429: "The server has more to do than it can. Wait a moment; the Now view shows who keeps it busy.",
    }[code] || (code >= 500 ? "Its log says more; the Audit-ID of the answer finds the line." : "");
  }
}

export function signIn(next) {
  credential = next;
  resources = undefined;
  try {
    if (next.kind === "session") sessionStorage.setItem(KEY, next.key);
    else sessionStorage.removeItem(KEY);
  } catch { /* a browser that keeps nothing */ }
}

/** The session that this tab had before it was loaded again. */
export function sessionKey() {
  try { return sessionStorage.getItem(KEY); } catch { return null; }
}

export const signedInBy = () => credential.kind;

export async function send(path, options = {}) {
  const headers = { Accept: "application/json", "X-Kubelith-Console": credential.kind === "session" ? credential.key : "1", ...options.headers };
  if (credential.kind === "token") headers.Authorization = `Bearer ${credential.token}`;
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", redirect: "error", referrerPolicy: "no-referrer" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    const lost = new ApiError(0, null, "The server cannot be reached.");
    lost.advice = "Is it still running? The page tries again by itself where it can.";
    throw lost;
  }
  if (!response.ok) {
    const text = await response.text();
    let status;
    try { status = JSON.parse(text); } catch { /* plain text */ }
    const error = new ApiError(response.status, status, text.slice(0, 400));
    if (response.status === 401 && credential.kind !== "none") dispatchEvent(new CustomEvent("signedout"));
    throw error;
  }
  return response;
}

export async function get(path, options) {
  return (await send(path, options)).json();
}

export async function post(path, body, options = {}) {
  const headers = { "Content-Type": "application/json", ...options.headers };
  return (await send(path, { ...options, method: options.method || "POST", headers, body: typeof body === "string" ? body : JSON.stringify(body) })).json();
}

export const whoAmI = async () => (await post("/apis/authentication.k8s.io/v1/selfsubjectreviews", { apiVersion: "authentication.k8s.io/v1", kind: "SelfSubjectReview" })).status.userInfo;

/** Everything that is served, custom and aggregated resources included. */
export async function discover(fresh) {
  if (resources && !fresh) return resources;
  const found = [];
  const [core, groups] = await Promise.all(["/api", "/apis"].map((path) => get(path, { headers: { Accept: DISCOVERY } })));
  for (const group of [...(core.items || []), ...(groups.items || [])]) {
    const seen = new Set();
    for (const version of group.versions || []) {
      for (const r of version.resources || []) {
        const kind = r.responseKind?.kind || "";
        const preferred = !seen.has(r.resource);
        seen.add(r.resource);
        found.push({ group: group.metadata?.name || "", version: version.version, resource: r.resource, kind, namespaced: r.scope === "Namespaced",
          verbs: r.verbs || [], short: r.shortNames || [], subresources: (r.subresources || []).map((s) => s.subresource), preferred });
      }
    }
  }
  return (resources = found);
}

export const find = async (group, resource, version) => (await discover()).find((r) => r.group === group && r.resource === resource && (version ? r.version === version : r.preferred));
export const ofKind = async (apiVersion, kind) => {
  const [group, version] = apiVersion.includes("/") ? apiVersion.split("/") : ["", apiVersion];
  const all = (await discover()).filter((r) => r.group === group && r.kind === kind);
  return all.find((r) => r.version === version) || all[0];
};

export function pathOf(r, namespace, name, query) {
  const parts = r.group ? ["apis", r.group, r.version] : ["api", r.version];
  if (r.namespaced && namespace) parts.push("namespaces", namespace);
  parts.push(r.resource);
  if (name) parts.push(name);
  const text = "/" + parts.map(encodeURIComponent).join("/");
  const search = new URLSearchParams(Object.entries(query || {}).filter(([, v]) => v !== "" && v !== undefined && v !== null)).toString();
  return search ? `${text}?${search}` : text;
}

/** What kubectl calls a resource. */
export const typeOf = (r) => (r.group ? `${r.resource}.${r.group}` : r.resource);

export const list = (r, namespace, query, signal) => get(pathOf(r, namespace, "", query), { signal, headers: { Accept: TABLE } });

/** Calls `tell` with each event until the server ends it or `signal` is given. */
export async function watch(path, tell, signal, asTable) {
  const response = await send(path, { signal, headers: { Accept: asTable ? TABLE : "application/json" } });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line) continue;
      const event = JSON.parse(line);
      if (event.type === "ERROR") throw new ApiError(event.object.code || 500, event.object);
      tell(event);
    }
  }
}

export function wait(milliseconds, signal) {
  return new Promise((done) => {
    const timer = setTimeout(done, milliseconds);
    signal?.addEventListener("abort", () => { clearTimeout(timer); done(); }, { once: true });
  });
}

/** Calls `look` now and then, until `signal` or until it answers false. Not while nobody sees the page. */
export async function poll(every, signal, look, first = every) {
  for (let pause = first; !signal.aborted; pause = every) {
    if (!document.hidden && (await look()) === false) return;
    await wait(pause, signal);
  }
}
