"""A list and the watch that goes on from its version sees every change once, in order; an old version is gone."""
import threading

from common import connect, make_namespace
from kubernetes import client, watch

NAMESPACE = "clients-python-watch"
core = connect()
make_namespace(core, NAMESPACE)


def write():
    for index in range(5):
        name = f"w-{index}"
        core.create_namespaced_config_map(NAMESPACE, client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name), data={"n": "0"}))
        core.patch_namespaced_config_map(name, NAMESPACE, {"data": {"n": "1"}})
        core.delete_namespaced_config_map(name, NAMESPACE)


start = core.list_namespaced_config_map(NAMESPACE).metadata.resource_version
writer = threading.Thread(target=write)
writer.start()
stream, seen = watch.Watch(), []
for event in stream.stream(core.list_namespaced_config_map, NAMESPACE, resource_version=start, timeout_seconds=50):
    seen.append((event["type"], event["object"].metadata.name, event["object"].data["n"]))
    if len(seen) == 15:
        stream.stop()
writer.join()
expected = [entry for i in range(5) for entry in (("ADDED", f"w-{i}", "0"), ("MODIFIED", f"w-{i}", "1"), ("DELETED", f"w-{i}", "1"))]
assert seen == expected, seen

versions = []
for event in watch.Watch().stream(core.list_namespaced_config_map, NAMESPACE, resource_version=start, timeout_seconds=1):
    versions.append(int(event["object"].metadata.resource_version))
assert len(versions) == 15 and versions == sorted(set(versions)), versions
print("done")
