"""Atoll and konnectivity over bad networks between cloud and site."""

import contextlib
import dataclasses
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

from . import hosts, peers
from .atoll import NAMESPACE, SITES, Atoll
from .cases import LIST, SMALL
from .keys import Keys
from .processes import Failed, Processes, free_ports
from .routes import ATOLL, KONNECTIVITY, atoll_route, url_route

CLOUD = "198.51.100.1"  # the addresses of `bench link`
POD = "bench-exec"
IMAGE = "registry.example.com/bench"


@dataclasses.dataclass(frozen=True)
class Network:
    """`state` is a line for `bench link`."""

    key: str
    title: str
    state: dict

    def slow(self):
        return self.state.get("kilobits") is not None


NETWORKS = [
    Network("good", "no delay, any rate", {}),
    Network("50ms", "round trip 50 ms", {"roundTripMillis": 50}),
    Network("50ms-1%", "round trip 50 ms, 1 % lost", {"roundTripMillis": 50, "lostPerMille": 10}),
    Network("50ms-5%", "round trip 50 ms, 5 % lost", {"roundTripMillis": 50, "lostPerMille": 50}),
    Network("200ms", "round trip 200 ms", {"roundTripMillis": 200}),
    Network("200ms-1%", "round trip 200 ms, 1 % lost", {"roundTripMillis": 200, "lostPerMille": 10}),
    Network("1mbit", "round trip 50 ms, 1 Mbit/s", {"roundTripMillis": 50, "kilobits": 1000}),
    Network("mtu", "round trip 50 ms, MTU 1,200", {"roundTripMillis": 50, "mtu": 1200}),
]
MEASURES = ("get", "fresh", "list", "watches", "exec")
# Cases in which the network forgets or dies. The figure is the time until a new request succeeds.
NAT, DEAD = "nat", "dead"
RECOVERIES = (NAT, DEAD)
IDLE = "idle"  # what a tunnel without requests carries
IDLE_SECONDS = 120
RECOVERY_TIMEOUT = 300  # seconds
NAT_EXPIRY = 60  # seconds


class Link:
    """`bench link`."""

    def __init__(self, bench, name, folder):
        self.cloud, self.site = f"{name}-cloud", f"{name}-site"
        self.log = open(folder / "link.log", "wb")
        self.process = subprocess.Popen([bench, "link", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log,
                                        text=True)
        line = ""
        while line != "ready\n":
            line = self.process.stdout.readline()
            if not line:
                raise Failed(f"bench link failed:\n{(folder / 'link.log').read_text().strip()}")

    def set(self, **state):
        """Sets the state of the network, and returns what it has carried until now."""
        self.process.stdin.write(json.dumps(state) + "\n")
        self.process.stdin.flush()
        return json.loads(self.process.stdout.readline())

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.log.close()


def within(namespace):
    return ("ip", "netns", "exec", namespace)


class Wan:
    """Two routes through the same network: one of Atoll, one of konnectivity. Clients are in the cloud, hosts at the site."""

    def __init__(self, args):
        self.args, self.folder, self.bench = args, args.dir, args.bin / "bench"
        self.results = {"arguments": sys.argv[1:], "networks": {}}
        self.link = self.kube = None
        self.cloud = self.site = None

    def start(self):
        self.link = Link(self.bench, f"atoll{os.getpid()}", self.folder)
        self.cloud = Processes(self.folder, within(self.link.cloud))
        self.site = Processes(self.folder, within(self.link.site))
        keys = Keys(self.folder / "keys", self.cloud, CLOUD)
        konnectivity = peers.Konnectivity(self.folder / KONNECTIVITY, self.cloud, keys, self.site, CLOUD)
        atoll = Atoll(ATOLL, self.args.bin, self.bench, self.folder / ATOLL, self.cloud, self.site, CLOUD)
        dev = hosts.DevHost("dev", self.args.bin, self.folder / "dev-host", self.site, keys.ca)
        atoll.serve("dev", dev.agent_kubeconfig)
        self.routes = {
            KONNECTIVITY: url_route(KONNECTIVITY, dev.url, dev.ca, keys.client, "", "--proxy",
                                    f"unix:{konnectivity.socket}"),
            ATOLL: atoll_route(ATOLL, {"certificate": atoll.kubeconfig("dev")}, ()),
        }
        if {"watches", "exec"} & set(self.args.measures):
            self.start_kube(atoll, konnectivity)

    def start_kube(self, atoll, konnectivity):
        """A real control plane, for watches and exec. kubectl needs a TCP port of konnectivity."""
        self.kube = hosts.KubeHost(self.folder / "kube", os.getpid(), within(self.link.site))
        atoll.serve("kube", self.kube.agent_kubeconfig)
        port, = free_ports(1)
        self.cloud.start("forward", sys.executable, pathlib.Path(__file__).with_name("forward.py"), port, konnectivity.socket)
        direct = self.folder / "konnectivity.kubeconfig"
        lines = self.kube.admin_kubeconfig.read_text().splitlines(keepends=True)
        proxied = [line + line[:len(line) - len(line.lstrip())] + f"proxy-url: http://127.0.0.1:{port}\n"
                   if line.strip().startswith("server:") else line for line in lines]
        direct.write_text("".join(proxied))
        self.clients = {KONNECTIVITY: (direct, f"{NAMESPACE}-{SITES['kube'][0]}"), ATOLL: (atoll.kubeconfig("kube"), NAMESPACE)}
        manifest = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": POD},
                    "spec": {"containers": [{"name": "main", "image": IMAGE}]}}
        atoll.create("kube", f"/api/v1/namespaces/{NAMESPACE}/pods", json.dumps(manifest))
        for name in self.clients:
            self.kubectl(name, "wait", "--for=condition=Ready", f"pod/{POD}", "--timeout=60s")

    def kubectl(self, name, *words):
        kubeconfig, namespace = self.clients[name]
        return self.cloud.run(hosts.KUBE_BINARIES / "kubectl", "--kubeconfig", kubeconfig, "-n", namespace, *words)

    # -- measurements

    def load(self, name, path, *flags):
        report = json.loads(self.cloud.run(self.bench, "load", *self.routes[name].flags(path, "certificate"), *flags, "--json"))
        if report["errors"]:
            raise Failed(f"{name}: {report['failures']}")
        return report["latency"]

    def get(self, name, network):
        """Milliseconds of small GETs, one after the other on one connection."""
        found = self.load(name, SMALL, "--http", "2", "--concurrency", "2", "--duration", f"{self.args.seconds}s")
        return {"p50": found["p50"], "p99": found["p99"]}

    def fresh(self, name, network):
        """Milliseconds of small GETs, each with a new connection."""
        found = self.load(name, SMALL, "--fresh", "--concurrency", "2", "--duration", f"{self.args.seconds}s")
        return {"p50": found["p50"], "p99": found["p99"]}

    def list(self, name, network):
        """Seconds of one list of 15.6 MB, and the MB that crossed the network for it."""
        before = self.link.set(**network.state)["siteBytes"]
        flags = ("--http", "2", "--concurrency", "1", "--requests", "1", "--warmup", "0", "--timeout", "10m")
        found = self.load(name, LIST, *flags)
        return {"s": found["max"] / 1000, "MB": (self.link.set(**network.state)["siteBytes"] - before) / 1e6}

    def watches(self, name, network):
        """Milliseconds from the sending of a change to its arrival at 100 watches."""
        kubeconfig, namespace = self.clients[name]
        # 100 watches x 3.5 KB x 2 changes a second are 5.6 Mbit/s: too much for a slow link without compression.
        watchers = 10 if network.slow() else 100
        report = json.loads(self.cloud.run(
            self.bench, "watch", "--kubeconfig", kubeconfig, "--namespace", namespace, "--watchers", watchers, "--rate", 2,
            "--duration", f"{self.args.seconds}s", "--grace", "20s", "--json"))
        if report["lost"]:
            raise Failed(f"{name}: {report['lost']} changes lost")
        return {"p50": report["delivery"]["p50"], "p99": report["delivery"]["p99"], "watches": watchers}

    def exec(self, name, network):
        """Milliseconds of `kubectl exec POD -- echo`: a new connection, the object, the session."""
        taken = []
        for _ in range(self.args.execs):
            start = time.monotonic()
            self.kubectl(name, "exec", POD, "--", "echo", "hello")
            taken.append(1000 * (time.monotonic() - start))
        return {"p50": statistics.median(taken), "p99": max(taken)}

    def run(self):
        print(f"{'':<28}{'':<9}" + "".join(f"{name:>20}" for name in (KONNECTIVITY, ATOLL)) + f"{'ratio':>9}", flush=True)
        for network in NETWORKS:
            if self.args.only and network.key not in self.args.only:
                continue
            self.link.set(**network.state)
            found = self.results["networks"][network.key] = {}
            for measure in self.args.measures:
                found[measure] = {}
                for name in (KONNECTIVITY, ATOLL):
                    try:
                        found[measure][name] = getattr(self, measure)(name, network)
                    except Failed as error:
                        found[measure][name] = {"failed": str(error)[-500:]}
                show(network.title if measure == self.args.measures[0] else "", measure, found[measure])
                self.write()

        for case in RECOVERIES:
            if not self.args.only or case in self.args.only:
                found = self.results["networks"][case] = {}
                for name in (KONNECTIVITY, ATOLL):
                    found[name] = self.recovery(name, case)
                words = {NAT: f"idle behind a NAT for {3 * NAT_EXPIRY // 2} s", DEAD: f"dead for {self.args.dead} s"}
                print(f"{words[case]:<28}{'GET after':<9}"
                      + "".join(f"{shown_recovery(found[name]):>20}" for name in (KONNECTIVITY, ATOLL)), flush=True)
                self.write()

        if not self.args.only or IDLE in self.args.only:
            found = self.results["networks"][IDLE] = self.idle()
            print(f"{'idle tunnel':<28}{'per hour':<9}"
                  + "".join(f"{found[name] / 1000:>17.0f} KB" for name in (KONNECTIVITY, ATOLL)), flush=True)
            self.write()

    def idle(self):
        """The bytes of an idle tunnel in an hour, in both directions, with IP headers. Ends konnectivity, so it is the last case."""
        self.link.set(roundTripMillis=50)
        both = self.idle_rate()
        for processes, name in ((self.site, "konnectivity-agent"), (self.cloud, "konnectivity-server")):
            processes.end(name)
        own = self.idle_rate()
        return {KONNECTIVITY: both - own, ATOLL: own}

    def idle_rate(self):
        time.sleep(2)  # the end of the last request, or of a process
        before = self.link.set(roundTripMillis=50)
        time.sleep(IDLE_SECONDS)
        after = self.link.set(roundTripMillis=50)
        return sum(after[key] - before[key] for key in ("cloudBytes", "siteBytes")) * 3600 / IDLE_SECONDS

    def recovery(self, name, case):
        """The seconds until a request succeeds after the network was idle or dead, or None."""
        before = {"natExpirySeconds": NAT_EXPIRY} if case == NAT else {}
        self.link.set(**before)
        self.once(name, RECOVERY_TIMEOUT)  # all connections are open
        if case == NAT:
            time.sleep(3 * NAT_EXPIRY / 2)
        else:
            self.link.set(dead=True)
            time.sleep(self.args.dead)
            self.link.set(**before)
        found = self.once(name, RECOVERY_TIMEOUT)
        self.link.set()
        self.once(name, RECOVERY_TIMEOUT)
        return found

    def once(self, name, limit):
        """Sends requests until one succeeds. Each has a second."""
        start = time.monotonic()
        while time.monotonic() < start + limit:
            with contextlib.suppress(Failed):
                self.load(name, SMALL, "--http", "1", "--concurrency", "1", "--requests", "1", "--warmup", "0", "--timeout", "1s")
                return time.monotonic() - start
        return None

    def write(self):
        (self.folder / "results.json").write_text(json.dumps(self.results, indent=1))

    def end(self):
        for processes in (self.site, self.cloud):
            if processes:
                processes.end()
        if self.kube:
            self.kube.end()
        if self.link:
            self.link.end()


def shown_recovery(seconds):
    return f"not in {RECOVERY_TIMEOUT} s" if seconds is None else f"{seconds:.1f} s"


def show(title, measure, found):
    """A line of the table."""
    def text(one):
        if "failed" in one:
            return "failed"
        if measure == "list":
            return f"{one['s']:.1f} s {one['MB']:.1f} MB"
        return f"{one['p50']:.0f} / {one['p99']:.0f} ms"
    key = "s" if measure == "list" else "p50"
    both = [found[name].get(key) for name in (KONNECTIVITY, ATOLL)]
    ratio = f"{both[1] / both[0]:.2f}" if all(both) else ""
    print(f"{title:<28}{measure:<9}" + "".join(f"{text(found[name]):>20}" for name in (KONNECTIVITY, ATOLL)) + f"{ratio:>9}")
    for name, one in found.items():
        if "failed" in one:
            print(f"    {name}: {one['failed']}")
    print("", end="", flush=True)
