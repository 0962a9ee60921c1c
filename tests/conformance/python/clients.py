"""Checks the official Python client with a cluster.

The program does not know whether the cluster is virtual. A check that fails on a plain cluster is wrong. The program creates
one namespace, and deletes it at the end. It prints one line for each check, "ok NAME (TIME)" or "FAILED NAME: REASON", and
exits with 1 if a check has failed.
"""

import argparse
import json
import random
import sys
import time
import traceback

from kubernetes import client, config, dynamic, utils, watch
from kubernetes.client.rest import ApiException
from kubernetes.stream import portforward, stream

LIMIT = 60  # seconds, for what has to become so


class World:
    """The shared state of the checks. Each check has its own objects."""

    def __init__(self, api):
        self.api = api
        self.core = client.CoreV1Api(api)
        self.apps = client.AppsV1Api(api)
        self.namespace = f"python-{random.randrange(100_000):05}"

    def __enter__(self):
        metadata = client.V1ObjectMeta(name=self.namespace)
        self.core.create_namespace(client.V1Namespace(metadata=metadata))
        eventually(lambda: self.core.read_namespaced_service_account("default", self.namespace))
        return self

    def __exit__(self, *problem):
        self.core.delete_namespace(self.namespace)
        eventually(lambda: equal("namespaces of this name", self.namespaces().count(self.namespace), 0))

    def namespaces(self):
        return [item.metadata.name for item in self.core.list_namespace().items]


def equal(what, seen, wanted):
    if seen != wanted:
        raise AssertionError(f"{what}: {seen!r} and not {wanted!r}")


def eventually(attempt):
    """Repeats a call until it succeeds, because the controllers of the cluster need some time."""
    end = time.monotonic() + LIMIT
    while True:
        try:
            return attempt()
        except (ApiException, AssertionError):
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def config_map(name, **data):
    return client.V1ConfigMap(metadata=client.V1ObjectMeta(name=name, labels={"check": name}), data=data)


def typed(world):
    made = world.core.create_namespaced_config_map(world.namespace, config_map("typed", key="one"))
    equal("the namespace", made.metadata.namespace, world.namespace)
    made.data["key"] = "two"
    world.core.replace_namespaced_config_map("typed", world.namespace, made)
    patched = world.core.patch_namespaced_config_map("typed", world.namespace, {"data": {"more": "three"}})
    equal("the data", patched.data, {"key": "two", "more": "three"})
    listed = world.core.list_config_map_for_all_namespaces(field_selector="metadata.name=typed")
    equal("where it is", [item.metadata.namespace for item in listed.items], [world.namespace])
    world.core.delete_namespaced_config_map("typed", world.namespace)
    equal("names", world.namespaces().count(world.namespace), 1)


def chunks(world):
    names = [f"chunk-{number}" for number in range(5)]
    for name in names:
        world.core.create_namespaced_config_map(world.namespace, config_map(name))
    seen, token = [], None
    while token != "":
        page = world.core.list_namespaced_config_map(world.namespace, limit=2, _continue=token)
        seen += [item.metadata.name for item in page.items if item.metadata.name.startswith("chunk-")]
        token = page.metadata._continue or ""
    equal("the names", seen, names)


def watches(world):
    listed = world.core.list_namespaced_config_map(world.namespace, label_selector="check=watched")
    world.core.create_namespaced_config_map(world.namespace, config_map("watched"))
    world.core.patch_namespaced_config_map("watched", world.namespace, {"data": {"key": "value"}})
    world.core.delete_namespaced_config_map("watched", world.namespace)
    events = watch.Watch().stream(
        world.core.list_namespaced_config_map,
        world.namespace,
        label_selector="check=watched",
        resource_version=listed.metadata.resource_version,
        timeout_seconds=LIMIT,
    )
    seen = [next(events)["type"] for _ in range(3)]
    equal("the events", seen, ["ADDED", "MODIFIED", "DELETED"])


def errors(world):
    try:
        world.core.read_namespaced_config_map("missing", world.namespace)
    except ApiException as problem:
        status = json.loads(problem.body)
        equal("the status", (problem.status, status["reason"]), (404, "NotFound"))
        equal("the message", status["message"], 'configmaps "missing" not found')
    else:
        raise AssertionError("what is not there was read")


def dynamically(world):
    kinds = dynamic.DynamicClient(world.api)
    maps = kinds.resources.get(api_version="v1", kind="ConfigMap")
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "dynamic"}, "data": {"key": "one"}}
    maps.server_side_apply(body=body, namespace=world.namespace, field_manager="python")
    equal("the data", maps.get(name="dynamic", namespace=world.namespace).data.to_dict(), {"key": "one"})
    maps.delete(name="dynamic", namespace=world.namespace)


def deployment(world):
    containers = [{"name": "web", "image": "nginx"}]
    template = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": containers}}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    manifest = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    utils.create_from_dict(world.api, manifest, namespace=world.namespace)

    def complete():
        web = world.apps.read_namespaced_deployment("web", world.namespace)
        equal("pods that are available", web.status.available_replicas, 2)
        equal("a selector that nobody wrote", web.spec.template.spec.node_selector, None)

    eventually(complete)
    world.apps.patch_namespaced_deployment_scale("web", world.namespace, {"spec": {"replicas": 0}})
    world.apps.delete_namespaced_deployment("web", world.namespace, propagation_policy="Foreground")


def shell(world):
    """A running pod. The first check that needs it creates it."""
    pod = {"metadata": {"name": "shell"}, "spec": {"containers": [{"name": "ticker", "image": "busybox"}]}}
    try:
        world.core.create_namespaced_pod(world.namespace, pod)
    except ApiException as problem:
        equal("the status", problem.status, 409)

    def running():
        equal("the phase", world.core.read_namespaced_pod("shell", world.namespace).status.phase, "Running")

    eventually(running)


def execute(world):
    shell(world)
    process = stream(
        world.core.connect_get_namespaced_pod_exec,
        "shell",
        world.namespace,
        command=["sh", "-c", "echo out; echo err >&2; exit 3"],
        stdin=False,
        stdout=True,
        stderr=True,
        tty=False,
        _preload_content=False,
    )
    process.run_forever(timeout=LIMIT)
    equal("standard output", process.read_stdout(), "out\n")
    equal("standard error", process.read_stderr(), "err\n")
    equal("the exit code", process.returncode, 3)


def forward(world):
    shell(world)
    forwarder = portforward(world.core.connect_get_namespaced_pod_portforward, "shell", world.namespace, ports="80")
    connection = forwarder.socket(80)
    connection.setblocking(True)
    connection.settimeout(LIMIT)
    connection.sendall(b"GET /status/418 HTTP/1.1\r\nHost: shell\r\nConnection: close\r\n\r\n")
    answer = b""
    while data := connection.recv(4096):
        answer += data
    equal("the answer", answer[:12], b"HTTP/1.1 418")
    connection.close()


def logs(world):
    shell(world)
    lines = watch.Watch().stream(world.core.read_namespaced_pod_log, "shell", world.namespace)
    # The first three lines exist, and the others are written during the read.
    seen = [next(lines) for _ in range(5)]
    equal("the lines", seen[:3], [f"line {number} of container ticker" for number in (1, 2, 3)])


CHECKS = {
    "typed": typed,
    "chunks": chunks,
    "watch": watches,
    "errors": errors,
    "dynamic": dynamically,
    "deployment": deployment,
    "exec": execute,
    "port-forward": forward,
    "logs": logs,
}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kubeconfig", required=True, metavar="FILE", help="the cluster")
    api = config.new_client_from_config(parser.parse_args().kubeconfig)
    failed = 0
    with World(api) as world:
        for name, check in CHECKS.items():
            begun = time.monotonic()
            try:
                check(world)
            except Exception:
                failed += 1
                print(f"FAILED {name}: {traceback.format_exc()}", flush=True)
            else:
                print(f"ok {name} ({1000 * (time.monotonic() - begun):.0f} ms)", flush=True)
    sys.exit(1 if failed else 0)


main()
