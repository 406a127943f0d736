"""Fixtures for pytest: `kubelith`, a Kubernetes API server of one test, and `kubelith_base`, which it is forked from.

The program is `kubelith` of the PATH, or the one that the variable KUBELITH names. Install what all tests need (definitions,
namespaces) into `kubelith_base`, in a fixture of the session that runs before the tests do.
"""

import json
import os
import secrets
import socket
import ssl
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

import pytest

START_SECONDS = 30


class ApiError(Exception):
    """The server refused. `code` and `status` say how and why."""

    def __init__(self, code, status):
        super().__init__(f"{code}: {status.get('message', status) if isinstance(status, dict) else status}")
        self.code, self.status = code, status


class Server:
    """A server that runs. `kubeconfig` is the text of one that gets a client in as administrator."""

    def __init__(self, url, token, authority, kubeconfig):
        self.url, self.token, self.kubeconfig = url, token, kubeconfig
        self._tls = ssl.create_default_context(cadata=authority)

    def request(self, method, path, body=None, content_type="application/json"):
        """Sends JSON as the administrator and answers what comes back, read if it is JSON."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        request = urllib.request.Request(self.url + path, data=data, method=method, headers=headers)
        try:
            with urllib.request.urlopen(request, context=self._tls) as answer:
                return _read(answer.read())
        except urllib.error.HTTPError as error:
            raise ApiError(error.code, _read(error.read())) from None

    def write_kubeconfig(self, path):
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w") as file:
            file.write(self.kubeconfig)
        return str(path)

    def snapshot(self):
        """Takes the state; answers what `reset` and `fork` take."""
        return self.request("POST", "/kubelith/v1/snapshots")["id"]

    def reset(self, snapshot):
        self.request("POST", "/kubelith/v1/reset", {"snapshot": snapshot})

    def fork(self, snapshot=None):
        """Another server with the same objects. Neither sees the other from then on."""
        body = {"snapshot": snapshot} if snapshot else {}
        made = self.request("POST", "/kubelith/v1/fork", body)
        return Fork(self, made["id"], made["server"], self.token, made["certificateAuthority"], made["kubeconfig"])

    def fault(self, **fault):
        """Scripts answers: fault(resource="pods", verbs=["update"], times=3, answer={"code": 409}). Answers its id."""
        return self.request("POST", "/kubelith/v1/faults", fault)["id"]

    def hits(self, fault):
        return self.request("GET", f"/kubelith/v1/faults/{fault}")["hits"]

    def clear_faults(self):
        self.request("DELETE", "/kubelith/v1/faults")

    def advance(self, duration):
        """Turns the clock, as `1h30m`, of a server that was started with --clock=manual."""
        return self.request("POST", "/kubelith/v1/clock", {"advance": duration})["now"]


class Fork(Server):
    def __init__(self, parent, fork, *args):
        super().__init__(*args)
        self._parent, self._id = parent, fork

    def stop(self):
        self._parent.request("DELETE", f"/kubelith/v1/forks/{self._id}")


class Process(Server):
    """A server in a process of its own."""

    def __init__(self, flags=()):
        self._folder = tempfile.TemporaryDirectory(prefix="kubelith-")
        folder, token = self._folder.name, secrets.token_hex(16)
        with open(os.path.join(folder, "tokens.csv"), "w") as file:
            file.write(f'{token},admin,admin,"system:masters"\n')
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        data = os.path.join(folder, "data")
        self._log = open(os.path.join(folder, "log"), "w")
        self._process = subprocess.Popen(
            [
                os.environ.get("KUBELITH", "kubelith"), "--storage-backend=memory", "--enable-test-api",
                f"--data-dir={data}", f"--token-auth-file={folder}/tokens.csv", "--authorization-mode=Node,RBAC",
                "--bind-address=127.0.0.1", f"--secure-port={port}", *flags,
            ],
            stdout=subprocess.DEVNULL, stderr=self._log,
        )
        try:
            kubeconfig = self._wait_for(lambda: _text(os.path.join(data, "admin.kubeconfig")))
            authority = self._wait_for(lambda: _text(os.path.join(data, "pki", "ca.crt")))
            super().__init__(f"https://127.0.0.1:{port}", token, authority, kubeconfig)
            self._wait_for(lambda: self.request("GET", "/readyz") == "ok")
        except BaseException:
            self.stop()
            raise

    def _wait_for(self, condition):
        end = time.monotonic() + START_SECONDS
        while True:
            try:
                found = condition()
                if found:
                    return found
            except (OSError, ApiError):
                pass
            if self._process.poll() is not None or time.monotonic() > end:
                raise RuntimeError(f"kubelith did not start:\n{_text(self._log.name)}")
            time.sleep(0.005)

    def stop(self):
        self._process.kill()
        self._process.wait()
        self._log.close()
        self._folder.cleanup()


def _read(data):
    text = data.decode()
    try:
        return json.loads(text)
    except ValueError:
        return text


def _text(path):
    with open(path) as file:
        return file.read()


@pytest.fixture(scope="session")
def kubelith_flags():
    """More flags for the server; define a fixture of this name to give some."""
    return []


@pytest.fixture(scope="session")
def kubelith_base(kubelith_flags):
    """The server that all tests of the session are forked from."""
    server = Process(kubelith_flags)
    yield server
    server.stop()


@pytest.fixture
def kubelith(kubelith_base):
    """A server of one test, with all that `kubelith_base` has."""
    fork = kubelith_base.fork()
    yield fork
    fork.stop()
