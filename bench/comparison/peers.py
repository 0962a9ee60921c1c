"""The software that Atoll is compared with."""

import pathlib
import subprocess

from .processes import Failed, connects, free_ports

HERE = pathlib.Path(__file__).resolve().parents[1] / "peers"
KONNECTIVITY = pathlib.Path(__file__).resolve().parents[2] / "target" / "peers"


class Nginx:
    """One TLS hop in front of one upstream; see bench/peers/nginx.conf."""

    def __init__(self, name, program, folder, processes, keys, upstream, upstream_ca, credential=()):
        self.name, self.program = name, program
        (folder / "temp").mkdir(parents=True)
        port, = free_ports(1)
        address = upstream.removeprefix("https://")
        certificate = "proxy_ssl_certificate {}; proxy_ssl_certificate_key {};".format(*credential) if credential else ""
        text = (HERE / "nginx.conf").read_text()
        values = {"PORT": port, "KEYS": keys.folder, "UPSTREAM": address, "UPSTREAM_CA": upstream_ca,
                  "UPSTREAM_NAME": "localhost", "UPSTREAM_CREDENTIAL": certificate}
        for key, value in values.items():
            text = text.replace(f"@{key}@", str(value))
        (folder / "nginx.conf").write_text(text)
        processes.start(name, program, "-p", folder, "-c", "nginx.conf", "-e", "stderr")
        self.url = f"https://127.0.0.1:{port}"
        processes.wait(f"{name} listens", lambda: connects(port), name)

    def description(self):
        done = subprocess.run([self.program, "-V"], capture_output=True, text=True)
        return ", ".join(line for line in done.stderr.splitlines() if line.startswith(("nginx version", "built with")))


class Konnectivity:
    """Server and agent of apiserver-network-proxy, with http-connect over a Unix socket, which is its fastest frontend: over
    TCP it requires mutual TLS between client and server, around the TLS of the request. TLS between the halves; nothing
    is logged. `edge` are the processes of the site, if they run elsewhere; they reach the server at `address`."""

    def __init__(self, folder, processes, keys, edge=None, address="127.0.0.1"):
        folder.mkdir()
        self.socket = folder / "konnectivity.sock"
        self.processes = ["konnectivity-server", "konnectivity-agent"]
        agents, admin, health, agent_admin, agent_health = free_ports(5)
        processes.start("konnectivity-server", KONNECTIVITY / "konnectivity-server", "--mode=http-connect", "--server-port=0",
                        f"--uds-name={self.socket}", f"--cluster-cert={keys.server[0]}", f"--cluster-key={keys.server[1]}",
                        f"--cluster-ca-cert={keys.ca}", f"--agent-port={agents}", f"--agent-bind-address={address}",
                        f"--admin-port={admin}", f"--health-port={health}", "--health-bind-address=127.0.0.1",
                        "--logtostderr", "--v=0")
        processes.wait("konnectivity-server listens", self.socket.exists, "konnectivity-server")
        (edge or processes).start("konnectivity-agent", KONNECTIVITY / "konnectivity-agent", f"--ca-cert={keys.ca}",
                        f"--agent-cert={keys.client[0]}", f"--agent-key={keys.client[1]}", f"--proxy-server-host={address}",
                        f"--proxy-server-port={agents}", f"--admin-server-port={agent_admin}",
                        f"--health-server-port={agent_health}", "--health-server-host=127.0.0.1", "--logtostderr", "--v=0")

    @staticmethod
    def description():
        module = next(line for line in (HERE / "konnectivity" / "go.mod").read_text().splitlines()
                      if "sigs.k8s.io/apiserver-network-proxy v" in line)
        return " ".join(module.removeprefix("require").split()[:2])


def require(nginx, without):
    """Fails if a peer is missing, unless a flag leaves it out."""
    if "nginx" not in without and not nginx:
        raise Failed("nginx is not installed; install the package nginx, name the binary with --nginx, or set --without nginx")
    if "konnectivity" not in without and not (KONNECTIVITY / "konnectivity-agent").exists():
        raise Failed("konnectivity is not built; run bench/peers/konnectivity/build, or set --without konnectivity")
