"""All processes of a run, and the routes through them."""

import os
import time

from . import hosts, peers
from .atoll import NAMESPACE, Atoll
from .cases import CONFIG_MAP, SMALL
from .keys import Keys
from .processes import START_TIMEOUT, CpuTime, Failed, Processes
from .routes import ATOLL, DIRECT, KONNECTIVITY, NGINX, OTHER, atoll_route, url_route


class World:
    """`routes` has the routes to each host, by name and in the order of the tables. Atoll and the peers run all the time. A
    control plane runs only during its measurements."""

    def __init__(self, args):
        self.args, self.folder, self.bench = args, args.dir, args.bin / "bench"
        self.processes = Processes(self.folder)
        self.keys = Keys(self.folder / "keys", self.processes)
        self.builds, self.kube_hosts, self.routes, self.peers = {}, {}, {}, {}

    def start(self):
        folders = {ATOLL: self.args.bin} | ({OTHER: self.args.against} if self.args.against else {})
        for name, binaries in folders.items():
            short = name.split()[0]
            self.builds[name] = Atoll(short, binaries, self.bench, self.folder / short, self.processes)
        if KONNECTIVITY not in self.args.without:
            self.peers[KONNECTIVITY] = peers.Konnectivity(self.folder / KONNECTIVITY, self.processes, self.keys)
        dev = {build: hosts.DevHost(build.name, self.args.bin, self.folder / f"{build.name}-host", self.processes, self.keys.ca)
               for build in self.builds.values()}
        files, tokens = {}, []
        for name, build in self.builds.items():
            build.serve("dev", dev[build].agent_kubeconfig)
            with_token, token = build.token_kubeconfig("dev")
            files[name] = {"certificate": build.kubeconfig("dev"), "token": with_token}
            tokens.append(token)
        host = dev[self.builds[ATOLL]]
        self.open_routes("dev", SMALL, host.url, host.ca, self.keys.client, tokens[0], files)

    def start_kube(self):
        """A control plane for each build, because two versions of the agent must not share a host."""
        files = {}
        for name, build in self.builds.items():
            host = self.kube_hosts[name] = hosts.KubeHost(self.folder / f"{build.name}-kube", os.getpid())
            build.serve("kube", host.agent_kubeconfig)
            files[name] = {"certificate": build.kubeconfig("kube")}
            for manifest in hosts.config_maps():
                build.create("kube", f"/api/v1/namespaces/{NAMESPACE}/configmaps", manifest)
        host = self.kube_hosts[ATOLL]
        self.open_routes("kube", CONFIG_MAP, host.url, host.ca, host.client, "", files, host.client)

    def open_routes(self, site, path, url, ca, client, token, files, credential=()):
        """`credential` is that of nginx for a host that requires one. Each route must forward a request for `path`."""
        routes = [url_route(DIRECT, url, ca, client, token)]
        if NGINX not in self.args.without:
            nginx = self.peers[NGINX] = peers.Nginx(f"nginx-{site}", self.args.nginx, self.folder / f"nginx-{site}",
                                                    self.processes, self.keys, url, ca, credential)
            routes.append(url_route(NGINX, nginx.url, self.keys.ca, self.keys.client, token, processes=[nginx.name]))
        if KONNECTIVITY in self.peers:
            konnectivity = self.peers[KONNECTIVITY]
            routes.append(url_route(KONNECTIVITY, url, ca, client, token, "--proxy", f"unix:{konnectivity.socket}",
                                    processes=konnectivity.processes))
        routes += [atoll_route(name, files[name], build.processes_of(site)) for name, build in self.builds.items()]
        for route in routes:
            self.await_route(route, path)
        self.routes[site] = {route.name: route for route in routes}

    def await_route(self, route, path):
        deadline = time.monotonic() + START_TIMEOUT
        while True:
            try:
                return self.processes.run(self.bench, "load", *route.flags(path, "certificate"), "--requests", 1,
                                          "--concurrency", 1, "--warmup", 0, "--timeout", "2s")
            except Failed:
                if time.monotonic() > deadline:
                    raise
            time.sleep(0.2)

    def flags_of_processes(self, names):
        return [word for name in names for word in ("--process", f"{name}={self.processes.pid(name)}")]

    def cpu_time(self):
        """Work of the started processes is not other work."""
        return CpuTime(lambda: [process.pid for process in self.processes.running.values()]
                       + [pid for host in self.kube_hosts.values() for pid in host.pids()])

    def software(self):
        return {name: one.description() for name, one in (self.builds | self.peers).items()}

    def end_kube(self):
        if self.kube_hosts:
            self.processes.end("nginx-kube", *(build.agent("kube") for build in self.builds.values()))
        while self.kube_hosts:
            _, host = self.kube_hosts.popitem()
            host.end()

    def end(self):
        self.end_kube()
        self.processes.end()
