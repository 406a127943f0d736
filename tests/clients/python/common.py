"""What the scripts share: a client from the kubeconfig named on the command line, and a namespace."""
import sys

from kubernetes import client, config


def connect():
    config.load_kube_config(sys.argv[1])
    return client.CoreV1Api()


def make_namespace(core, name):
    for make in (
        lambda: core.create_namespace(client.V1Namespace(metadata=client.V1ObjectMeta(name=name))),
        lambda: core.create_namespaced_service_account(name, client.V1ServiceAccount(metadata=client.V1ObjectMeta(name="default"))),
    ):
        try:
            make()
        except client.ApiException as error:
            if error.status != 409:
                raise


def expect_status(status, reason, call):
    try:
        call()
    except client.ApiException as error:
        assert error.status == status, error
        assert f'"reason":"{reason}"' in error.body, error.body
        return
    raise AssertionError(f"expected {status} {reason}")
