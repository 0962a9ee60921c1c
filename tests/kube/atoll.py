"""Both halves of Atoll on a host of `tests/kube/up`, from files that an operator would write."""

import os
import subprocess
import time

from plane import BIN, ROOT, Failed, Ports

AGENT = "site-a"
BINARIES = ("proxy-server", "proxy-agent", "atoll")


def binaries(folder):
    """`folder`, if everything of Atoll is in it."""
    missing = [name for name in BINARIES if not os.access(folder / name, os.X_OK)]
    if missing:
        raise Failed(f"not in {folder}: {', '.join(missing)}; run cargo build --release, or name another --bin")
    return folder.resolve()


class Site:
    """A host cluster in `folder`/host, a proxy-server, and an agent with virtual clusters."""

    def __init__(self, folder, binaries):
        self.dir = folder
        self.bin = binaries
        self.processes = []
        self.host = folder / "host" / "host.kubeconfig"
        self.endpoint = None  # the port, once there is one

    def run(self, *command, **options):
        """What the command prints; it must succeed."""
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, **options)
        if done.returncode:
            raise Failed(f"{' '.join(str(word) for word in command)}: {done.stdout}{done.stderr}")
        return done.stdout

    def tool(self, name, kubeconfig, *words):
        """Runs a client that `tests/kube/build` built."""
        env = {"PATH": os.environ["PATH"], "HOME": str(self.dir), "KUBECONFIG": str(kubeconfig)}
        return self.run(BIN / name, *words, env=env, timeout=120)

    def up(self, *options):
        """Starts the host. It ends with this process, however that ends."""
        self.run(ROOT / "tests" / "kube" / "up", self.dir / "host", *options, "--owner", os.getpid())

    def found(self, clusters, more=""):
        """Starts both halves and waits until all virtual clusters are provisioned. `clusters` has the rest of each entry in the
        agent's list by name, and `more` is more of the agent's configuration."""
        self.atoll("certs", "init", ".")
        self.atoll("certs", "agent", AGENT, "--dir", ".")
        for name in clusters:
            self.atoll("certs", "cluster", name, "--dir", ".")
        ports = Ports(None)
        proxy, self.endpoint, agents, *rest = ports.take(7)
        ports.release()
        entries = "".join(f"- {{name: {name}, agents: [{AGENT}], clientCA: {{certificate: clusters/{name}/client-ca.crt, "
                          f"key: clusters/{name}/client-ca.key}}}}\n" for name in clusters)
        (self.dir / "server.yaml").write_text(
            "apiVersion: atoll.dev/v1alpha1\nkind: ProxyServerConfiguration\n"
            f"listeners: {{proxy: 127.0.0.1:{proxy}, endpoint: 127.0.0.1:{self.endpoint}, agents: 127.0.0.1:{agents}, "
            f"probes: 127.0.0.1:{rest[0]}, admin: 127.0.0.1:{rest[1]}}}\n"
            "servingCA: {certificate: serving-ca.crt, key: serving-ca.key}\n"
            f"agentCA: {{certificate: agent-ca.crt}}\nclusters:\n{entries}")
        slices = ", ".join(f"{{name: {name}, {nodes}}}" for name, nodes in clusters.items())
        (self.dir / "agent.yaml").write_text(
            "apiVersion: atoll.dev/v1alpha1\nkind: ProxyAgentConfiguration\n"
            f"servers: [127.0.0.1:{agents}]\n"
            f"identity: {{certificate: agents/{AGENT}.crt, key: agents/{AGENT}.key, serverCA: serving-ca.crt}}\n"
            f"listeners: {{probes: 127.0.0.1:{rest[2]}, admin: 127.0.0.1:{rest[3]}}}\n"
            f"host: {{kubeconfig: host/agent.kubeconfig}}\n{more}virtualClusters: [{slices}]\n")
        self.start("server", "proxy-server", "--config", "server.yaml")
        self.start("agent", "proxy-agent", "--config", "agent.yaml")
        for name in clusters:
            self.printed("agent", f"the virtual cluster is provisioned cluster={name}\n")
        self.printed("agent", "tunnel established")

    def kubeconfig(self, cluster, *options):
        """A file for the administrator of a virtual cluster."""
        path = self.dir / f"{cluster}.kubeconfig"
        self.atoll("kubeconfig", cluster, "--admin", "--server-config", "server.yaml", *options, "-o", path)
        return path

    def down(self):
        """Ends everything that was started."""
        for _, process in reversed(self.processes):
            process.terminate()
        for _, process in self.processes:
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
        subprocess.run([ROOT / "tests" / "kube" / "down", self.dir / "host"], capture_output=True)

    def atoll(self, *words):
        return self.run(self.bin / "atoll", *words, cwd=self.dir)

    def start(self, name, program, *words):
        with open(self.dir / f"{name}.log", "ab") as log:
            process = subprocess.Popen([self.bin / program, *words], cwd=self.dir, stdin=subprocess.DEVNULL, stdout=log,
                                       stderr=log)
        self.processes.append((name, process))

    def printed(self, name, text, limit=60):
        """Waits until the log of a process has `text`."""
        end = time.monotonic() + limit
        while text not in (log := (self.dir / f"{name}.log").read_text()):
            dead = [other for other, process in self.processes if process.poll() is not None]
            if dead or time.monotonic() > end:
                raise Failed(f"{name} has not printed {text!r}; ended: {dead}; its log:\n{log[-2000:]}")
            time.sleep(0.2)
