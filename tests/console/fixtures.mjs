// What the views show in the tests: a small application, roles for a restricted user, extensions that fail, and texts that try to
// be markup.

export const XSS = `<img src=x onerror="window.xss=1"><script>window.xss=1</script>`;
const labels = { app: "web" };
const container = { name: "web", image: "registry.example/web:1.4", ports: [{ containerPort: 8080 }], resources: { requests: { cpu: "100m", memory: "128Mi" } } };

export async function furnish(server) {
  const make = (path, object) => server.make(path, object);
  await make("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "dev" } });
  await make("/api/v1/namespaces", { apiVersion: "v1", kind: "Namespace", metadata: { name: "prod" } });
  await access(make);
  const deployment = await make("/apis/apps/v1/namespaces/dev/deployments?fieldManager=helm", { apiVersion: "apps/v1", kind: "Deployment", metadata: { name: "web", labels },
    spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { automountServiceAccountToken: false, containers: [container] } } } });
  const owned = (kind, name, uid, apiVersion) => [{ apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true }];
  const set = await make("/apis/apps/v1/namespaces/dev/replicasets", { apiVersion: "apps/v1", kind: "ReplicaSet", metadata: { name: "web-7c9f", labels, ownerReferences: owned("Deployment", "web", deployment.metadata.uid, "apps/v1") },
    spec: { replicas: 3, selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers: [container] } } } });
  for (const [i, phase] of ["Running", "Running", "Pending"].entries()) {
    const name = `web-7c9f-${"abc"[i]}`;
    const pod = await make("/api/v1/namespaces/dev/pods?fieldManager=replicaset-controller", { apiVersion: "v1", kind: "Pod", metadata: { name, labels, annotations: { note: XSS, "example.com/script": "line one\nline two </script>\n" },
      ownerReferences: owned("ReplicaSet", "web-7c9f", set.metadata.uid, "apps/v1") }, spec: { automountServiceAccountToken: false, containers: [container] } });
    await server.call("PATCH", `/api/v1/namespaces/dev/pods/${name}/status?fieldManager=kubelet`, { status: { phase, podIP: `10.1.0.${i + 4}`, message: XSS, conditions: [{ type: "Ready", status: phase === "Running" ? "True" : "False", message: XSS }] } },
      { authorization: "Bearer admintoken", "content-type": "application/merge-patch+json" });
    await make("/api/v1/namespaces/dev/events", { apiVersion: "v1", kind: "Event", metadata: { name: `${name}.1` }, involvedObject: { apiVersion: "v1", kind: "Pod", namespace: "dev", name, uid: pod.metadata.uid },
      reason: i === 2 ? "FailedScheduling" : "Started", type: i === 2 ? "Warning" : "Normal", message: `Container web: ${XSS}`, count: i + 1, lastTimestamp: new Date().toISOString(), source: { component: "kubelet" } });
  }
  for (let i = 0; i < 24; i += 1) await make("/api/v1/namespaces/dev/configmaps", { apiVersion: "v1", kind: "ConfigMap", metadata: { name: `settings-${String(i).padStart(2, "0")}`, labels: { part: String(i % 3) } }, data: { level: "info", "app.yaml": "a: 1\nb:\n  - 2\n" } });
  await extensions(server, make);
  await denials(server);
}

async function access(make) {
  const rbac = "rbac.authorization.k8s.io";
  await make(`/apis/${rbac}/v1/namespaces/dev/roles`, { apiVersion: `${rbac}/v1`, kind: "Role", metadata: { name: "reader", namespace: "dev" },
    rules: [{ apiGroups: [""], resources: ["pods", "configmaps", "events"], verbs: ["get", "list", "watch"] }] });
  await make(`/apis/${rbac}/v1/namespaces/dev/rolebindings`, { apiVersion: `${rbac}/v1`, kind: "RoleBinding", metadata: { name: "devs-read", namespace: "dev" },
    roleRef: { apiGroup: rbac, kind: "Role", name: "reader" }, subjects: [{ apiGroup: rbac, kind: "Group", name: "devs" }] });
}

async function extensions(server, make) {
  const group = "example.com";
  await make("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", { apiVersion: "apiextensions.k8s.io/v1", kind: "CustomResourceDefinition", metadata: { name: `widgets.${group}` },
    spec: { group, scope: "Namespaced", names: { plural: "widgets", singular: "widget", kind: "Widget", shortNames: ["wd"] },
      versions: [{ name: "v1", served: true, storage: true, additionalPrinterColumns: [{ name: "Motto", type: "string", jsonPath: ".spec.motto" }],
        schema: { openAPIV3Schema: { type: "object", properties: { spec: { type: "object", "x-kubernetes-validations": [{ rule: "self.size < 100", message: "too large" }], properties: { size: { type: "integer" }, motto: { type: "string" } } } } } } }] } });
  for (let tries = 0; (await server.call("POST", `/apis/${group}/v1/namespaces/dev/widgets`, { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "first" }, spec: { size: 3, motto: XSS } })).status !== 201; tries += 1) {
    if (tries > 200) throw new Error("the definition is not established");
    await new Promise((done) => setTimeout(done, 20));
  }
  const admission = "admissionregistration.k8s.io";
  const rule = { apiGroups: [group], apiVersions: ["v1"], operations: ["CREATE"], resources: ["widgets"] };
  await make(`/apis/${admission}/v1/validatingwebhookconfigurations`, { apiVersion: `${admission}/v1`, kind: "ValidatingWebhookConfiguration", metadata: { name: "checks" },
    webhooks: [{ name: "widgets.checks.example.com", failurePolicy: "Ignore", sideEffects: "None", admissionReviewVersions: ["v1"], timeoutSeconds: 1, rules: [rule], clientConfig: { url: "https://127.0.0.1:9/check" } }] });
  await make(`/apis/${admission}/v1/validatingadmissionpolicies`, { apiVersion: `${admission}/v1`, kind: "ValidatingAdmissionPolicy", metadata: { name: "small-widgets" },
    spec: { failurePolicy: "Fail", matchConstraints: { resourceRules: [rule] }, validations: [{ expression: "object.spec.size < 10", message: "widgets are small" }] } });
  await make(`/apis/${admission}/v1/validatingadmissionpolicybindings`, { apiVersion: `${admission}/v1`, kind: "ValidatingAdmissionPolicyBinding", metadata: { name: "small-widgets" }, spec: { policyName: "small-widgets", validationActions: ["Deny"] } });
  await make("/apis/apiregistration.k8s.io/v1/apiservices", { apiVersion: "apiregistration.k8s.io/v1", kind: "APIService", metadata: { name: "v1beta1.metrics.example.com" },
    spec: { group: "metrics.example.com", version: "v1beta1", groupPriorityMinimum: 100, versionPriority: 100, insecureSkipTLSVerify: true, service: { namespace: "dev", name: "metrics" } } });
  await make(`/apis/${group}/v1/namespaces/dev/widgets`, { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "second" }, spec: { size: 4, motto: "plain" } });
  await server.call("POST", `/apis/${group}/v1/namespaces/dev/widgets`, { apiVersion: `${group}/v1`, kind: "Widget", metadata: { name: "huge" }, spec: { size: 40 } });
}

async function denials(server) {
  await server.call("GET", "/api/v1/secrets", undefined, { authorization: "Bearer alicetoken" });
  await server.call("GET", "/api/v1/namespaces/prod/pods", undefined, { authorization: "Bearer admintoken", "impersonate-user": XSS });
}
