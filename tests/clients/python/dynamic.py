"""The dynamic client: any resource by its discovery, server-side apply, a custom resource."""
import os

import yaml
from common import connect, make_namespace
from kubernetes import client, dynamic
from kubernetes.dynamic.exceptions import NotFoundError

NAMESPACE = "clients-python-dynamic"
core = connect()
make_namespace(core, NAMESPACE)
api = dynamic.DynamicClient(core.api_client)

maps = api.resources.get(api_version="v1", kind="ConfigMap")
body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"a": "1"}}
applied = maps.server_side_apply(body=body, namespace=NAMESPACE, field_manager="python")
assert applied.metadata.managedFields[0].operation == "Apply"
assert maps.get(name="applied", namespace=NAMESPACE).data.a == "1"
maps.delete(name="applied", namespace=NAMESPACE)

folder = os.path.dirname(os.path.abspath(__file__))
text = open(os.path.join(folder, "..", "widgets-crd.yaml")).read().replace("clients.example.com", "python.clients.example.com")
definition = yaml.safe_load(text)
definition["spec"]["names"].update(plural="pywidgets", singular="pywidget", kind="PyWidget", shortNames=["pw"])
definition["metadata"]["name"] = "pywidgets.python.clients.example.com"
crds = api.resources.get(api_version="apiextensions.k8s.io/v1", kind="CustomResourceDefinition")
crds.create(body=definition)
for event in crds.watch(field_selector="metadata.name=pywidgets.python.clients.example.com", timeout=30):
    conditions = event["raw_object"].get("status", {}).get("conditions") or []
    if any(c["type"] == "Established" and c["status"] == "True" for c in conditions):
        break
else:
    raise AssertionError("the definition was never established")

api.resources.invalidate_cache()
widgets = api.resources.get(api_version="python.clients.example.com/v1", kind="PyWidget")
widget = {"apiVersion": "python.clients.example.com/v1", "kind": "PyWidget", "metadata": {"name": "w"}, "spec": {"size": 5}}
assert widgets.create(body=widget, namespace=NAMESPACE).spec.colour == "red"
assert widgets.get(namespace=NAMESPACE).items[0].spec.size == 5
widgets.patch(name="w", namespace=NAMESPACE, body={"spec": {"size": 6}}, content_type="application/merge-patch+json")
assert widgets.get(name="w", namespace=NAMESPACE).spec.size == 6
widgets.delete(name="w", namespace=NAMESPACE)
crds.delete(name="pywidgets.python.clients.example.com")
try:
    widgets.get(name="w", namespace=NAMESPACE)
    raise AssertionError("the widget is still there")
except NotFoundError:
    pass
print("done")
