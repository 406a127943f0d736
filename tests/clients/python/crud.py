"""Typed objects: create, read, list with pages, replace, patch, delete, errors."""
from common import connect, expect_status, make_namespace
from kubernetes import client

NAMESPACE = "clients-python-crud"
core = connect()
make_namespace(core, NAMESPACE)
apps = client.AppsV1Api()

created = core.create_namespaced_config_map(
    NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings", labels={"a": "b"}), data={"k": "v"})
)
assert created.metadata.uid and created.metadata.resource_version
expect_status(
    409, "AlreadyExists",
    lambda: core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name="settings"))),
)

read = core.read_namespaced_config_map("settings", NAMESPACE)
assert read.data == {"k": "v"}, read
stale = read.metadata.resource_version
read.data["k"] = "w"
replaced = core.replace_namespaced_config_map("settings", NAMESPACE, read)
assert replaced.data == {"k": "w"} and replaced.metadata.resource_version != stale
read.metadata.resource_version = stale
expect_status(409, "Conflict", lambda: core.replace_namespaced_config_map("settings", NAMESPACE, read))

patched = core.patch_namespaced_config_map("settings", NAMESPACE, {"data": {"more": "x"}})
assert patched.data == {"k": "w", "more": "x"}, patched

for index in range(12):
    core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(generate_name="page-", labels={"page": "yes"})))
names, token = set(), None
while True:
    page = core.list_namespaced_config_map(NAMESPACE, label_selector="page=yes", limit=5, _continue=token)
    names.update(item.metadata.name for item in page.items)
    token = page.metadata._continue
    if not token:
        break
assert len(names) == 12, names

template = client.V1PodTemplateSpec(
    metadata=client.V1ObjectMeta(labels={"app": "web"}),
    spec=client.V1PodSpec(containers=[client.V1Container(name="web", image="example.com/web:1", ports=[client.V1ContainerPort(container_port=80)])]),
)
deployment = apps.create_namespaced_deployment(
    NAMESPACE,
    client.V1Deployment(
        metadata=client.V1ObjectMeta(name="web"),
        spec=client.V1DeploymentSpec(replicas=2, selector=client.V1LabelSelector(match_labels={"app": "web"}), template=template),
    ),
)
assert deployment.spec.strategy.type == "RollingUpdate" and deployment.spec.revision_history_limit == 10
scale = apps.patch_namespaced_deployment_scale("web", NAMESPACE, {"spec": {"replicas": 5}})
assert scale.spec.replicas == 5
status = apps.patch_namespaced_deployment_status("web", NAMESPACE, {"status": {"replicas": 5, "observedGeneration": 1}})
assert status.status.replicas == 5 and status.spec.replicas == 5

secret = core.create_namespaced_secret(NAMESPACE, client.V1Secret(metadata=client.V1ObjectMeta(name="s"), string_data={"p": "hidden"}))
assert secret.data == {"p": "aGlkZGVu"} and secret.string_data is None

core.delete_collection_namespaced_config_map(NAMESPACE, label_selector="page=yes")
core.delete_namespaced_config_map("settings", NAMESPACE)
core.delete_namespaced_secret("s", NAMESPACE)
apps.delete_namespaced_deployment("web", NAMESPACE, propagation_policy="Background")
expect_status(404, "NotFound", lambda: core.read_namespaced_config_map("settings", NAMESPACE))
assert not core.list_namespaced_config_map(NAMESPACE, label_selector="page=yes").items
print("done")
