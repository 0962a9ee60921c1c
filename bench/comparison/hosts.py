"""The host clusters, which respond to all requests of agents."""

import json
import pathlib
import subprocess

from .processes import Failed

ROOT = pathlib.Path(__file__).resolve().parents[2]
KUBE = ROOT / "tests" / "kube"
KUBE_BINARIES = ROOT / "target" / "kube" / "bin"
KUBE_NEEDED = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl", "kwok", "fake-kubelet")
CONFIG_MAPS = 300  # 3.5 KB each


class DevHost:
    """`dev-apiserver` behind `bench upstream`. The upstream responds to the measured paths from memory, so it is never the
    bottleneck. dev-apiserver responds to all other requests, and is idle during measurements."""

    def __init__(self, name, binaries, folder, processes, client_ca):
        folder.mkdir()
        self.processes, self.name = processes, name
        processes.start(f"{name}-dev-apiserver", binaries / "dev-apiserver", "--dir", folder)
        processes.wait(f"{name}-dev-apiserver serves", (folder / "host.kubeconfig").exists, f"{name}-dev-apiserver")
        log = processes.start(f"{name}-upstream", binaries / "bench", "upstream", "--dir", folder, "--host",
                              folder / "host.kubeconfig", "--client-ca", client_ca, until="ready\n")
        self.url = log.read_text().split()[1]
        self.ca = folder / "upstream-ca.crt"
        self.agent_kubeconfig = folder / "upstream.kubeconfig"


class KubeHost:
    """A real control plane of `tests/kube`, with ConfigMaps in one namespace. `within` are the words before its commands."""

    def __init__(self, folder, owner, within=()):
        self.folder = folder
        try:
            done = subprocess.run([*within, KUBE / "up", folder, "--owner", str(owner)], capture_output=True, text=True, timeout=600)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"tests/kube/up {folder} did not end") from error
        if done.returncode != 0:
            raise Failed(f"tests/kube/up {folder}\n{done.stderr.strip()}")
        self.url = (folder / "apiservers").read_text().split()[0]
        self.ca = folder / "pki" / "ca.crt"
        self.client = [folder / "pki" / "admin.crt", folder / "pki" / "admin.key"]
        self.admin_kubeconfig = folder / "host.kubeconfig"
        self.agent_kubeconfig = folder / "agent.kubeconfig"

    def pids(self):
        return [int(file.read_text().split()[0]) for file in (self.folder / "pids").glob("*")]

    def end(self):
        subprocess.run([KUBE / "down", self.folder], stdout=subprocess.DEVNULL, timeout=120)


def kube_missing():
    """The reason why kube-apiserver cannot be the host, or nothing."""
    missing = [name for name in KUBE_NEEDED if not (KUBE_BINARIES / name).exists()]
    return f"{', '.join(missing)} not in target/kube/bin; run tests/kube/build" if missing else ""


def config_maps():
    """The manifests of ConfigMaps. Their list has 1.0 MB."""
    for number in range(CONFIG_MAPS):
        yield json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": f"bench-{number}"},
                          "data": {"text": f"{number:05} " * 500}})
