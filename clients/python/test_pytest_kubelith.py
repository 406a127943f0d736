"""The fixtures, tried; and an operator made with kopf, tested by them, where kopf and its client are installed."""

import asyncio
import threading

import pytest

from pytest_kubelith import ApiError

MAPS = "/api/v1/namespaces/default/configmaps"
WIDGETS = "/apis/example.com/v1/namespaces/default/widgets"


@pytest.fixture(scope="session")
def kubelith_flags():
    return ["--clock=2026-01-31T12:00:00Z", "--controllers=-*"]


@pytest.fixture(scope="session", autouse=True)
def definitions(kubelith_base):
    kubelith_base.request("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", {
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
            "versions": [{
                "name": "v1", "served": True, "storage": True, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
            }],
        },
    })


def config_map(name):
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def names(server):
    return [item["metadata"]["name"] for item in server.request("GET", MAPS)["items"]]


@pytest.mark.parametrize("turn", range(3))
def test_each_test_begins_with_the_same(kubelith, turn):
    assert names(kubelith) == []
    kubelith.request("POST", MAPS, config_map(f"of-{turn}"))
    assert names(kubelith) == [f"of-{turn}"]


def test_snapshots(kubelith):
    kubelith.request("POST", MAPS, config_map("a"))
    snapshot = kubelith.snapshot()
    kubelith.request("DELETE", f"{MAPS}/a")
    kubelith.reset(snapshot)
    assert names(kubelith) == ["a"]


def test_faults(kubelith):
    fault = kubelith.fault(resource="configmaps", verbs=["list"], times=1, answer={"code": 503})
    with pytest.raises(ApiError) as refused:
        names(kubelith)
    assert refused.value.code == 503 and kubelith.hits(fault) == 1
    assert names(kubelith) == []


def test_the_clock(kubelith):
    assert kubelith.advance("1h") == "2026-01-31T13:00:00Z"
    made = kubelith.request("POST", MAPS, config_map("a"))
    assert made["metadata"]["creationTimestamp"] == "2026-01-31T13:00:00Z"


def test_an_operator_of_kopf(kubelith, tmp_path, monkeypatch):
    kopf = pytest.importorskip("kopf")
    kubernetes = pytest.importorskip("kubernetes")
    config = kubelith.write_kubeconfig(tmp_path / "config")
    monkeypatch.setenv("KUBECONFIG", config)
    registry = kopf.OperatorRegistry()

    @kopf.on.login(registry=registry)
    def login(**kwargs):
        return kopf.login_with_kubeconfig(**kwargs)

    @kopf.on.create("example.com", "v1", "widgets", registry=registry, backoff=0.05)
    def made(name, namespace, spec, **_):
        api = kubernetes.client.CoreV1Api(kubernetes.config.new_client_from_config(config))
        body = {"metadata": {"name": name}, "data": {"size": str(spec["size"])}}
        api.create_namespaced_config_map(namespace, body)

    # The first attempt fails, as it would with a server that is being replaced.
    fault = kubelith.fault(resource="configmaps", verbs=["create"], times=1, answer={"code": 503})
    ready, stop = threading.Event(), threading.Event()
    operator = threading.Thread(target=lambda: asyncio.run(kopf.operator(
        registry=registry, namespaces=["default"], ready_flag=ready, stop_flag=stop,
    )))
    operator.start()
    try:
        assert ready.wait(30)
        kubelith.request("POST", WIDGETS, {
            "apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w"}, "spec": {"size": 3},
        })
        for _ in range(600):
            if "w" in names(kubelith):
                break
            stop.wait(0.05)
        assert kubelith.request("GET", f"{MAPS}/w")["data"] == {"size": "3"}
        assert kubelith.hits(fault) == 1
    finally:
        stop.set()
        operator.join(30)
