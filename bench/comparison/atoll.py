"""One build of Atoll between clients and hosts: a proxy-server and an agent for each host."""

import contextlib
import hashlib
import json
import time

from .processes import START_TIMEOUT, Failed, free_ports, memory

# Each agent serves two virtual clusters, like the budget for its idle memory. The first one is measured.
SITES = {"dev": ("ke-beijing", "ke-hangzhou"), "kube": ("kube-beijing", "kube-hangzhou")}
NAMESPACE = "edge"
PROGRAMS = ("proxy-server", "proxy-agent", "atoll")

SERVER = """\
apiVersion: atoll.dev/v1alpha1
kind: ProxyServerConfiguration
listeners: {{proxy: 127.0.0.1:{proxy}, endpoint: 127.0.0.1:{endpoint}, agents: {address}:{agents}, \
probes: 127.0.0.1:{probes}, admin: 127.0.0.1:{admin}}}
servingCA: {{certificate: serving-ca.crt, key: serving-ca.key}}
agentCA: {{certificate: agent-ca.crt}}
drain: 2s
hostNames: [{address}]
clusters:
"""
CLUSTER = """\
- {{name: {0}, agents: [{1}], clientCA: {{certificate: clusters/{0}/client-ca.crt, key: clusters/{0}/client-ca.key}}}}
"""
# dev-apiserver enforces no admission policies. They have no cost on the measured paths.
AGENT = """\
apiVersion: atoll.dev/v1alpha1
kind: ProxyAgentConfiguration
servers: [{address}:{agents}]
identity: {{certificate: agents/{site}.crt, key: agents/{site}.key, serverCA: serving-ca.crt}}
listeners: {{probes: 127.0.0.1:{probes}, admin: 127.0.0.1:{admin}}}
drain: 2s
host: {{kubeconfig: {kubeconfig}, unsafeDirectAccess: true}}
virtualClusters:
- {{name: {clusters[0]}, nodeSelector: {{location: beijing}}}}
- {{name: {clusters[1]}, nodeSelector: {{location: hangzhou}}}}
"""


class Atoll:
    """The processes are NAME-proxy-server, NAME-agent-dev and NAME-agent-kube. `edge` are the processes of the site, if they
    run elsewhere than the others; they reach the proxy-server at `address`."""

    def __init__(self, name, binaries, bench, folder, processes, edge=None, address="127.0.0.1"):
        self.name, self.binaries, self.bench, self.folder, self.processes = name, binaries, bench, folder, processes
        self.edge, self.address = edge or processes, address
        missing = [program for program in PROGRAMS if not (binaries / program).exists()]
        if missing:
            raise Failed(f"{', '.join(missing)} not in {binaries}")
        folder.mkdir()
        self.server = f"{name}-proxy-server"
        self.atoll("certs", "init", folder)
        proxy, endpoint, self.agents, probes, admin = free_ports(5)
        config = SERVER.format(address=address, proxy=proxy, endpoint=endpoint, agents=self.agents, probes=probes, admin=admin)
        for site, clusters in SITES.items():
            self.atoll("certs", "agent", site, "--dir", folder)
            for cluster in clusters:
                self.atoll("certs", "cluster", cluster, "--dir", folder)
                config += CLUSTER.format(cluster, site)
        (folder / "server.yaml").write_text(config)
        processes.start(self.server, binaries / "proxy-server", "--config", folder / "server.yaml")

    def atoll(self, *words):
        return self.processes.run(self.binaries / "atoll", *words)

    def agent(self, site):
        return f"{self.name}-agent-{site}"

    def processes_of(self, site):
        """The processes on the route to this host."""
        return [self.server, self.agent(site)]

    def serve(self, site, host_kubeconfig):
        """Starts the agent of this host, and waits until its first cluster has a namespace."""
        clusters = SITES[site]
        probes, admin = free_ports(2)
        config = self.folder / f"{site}.yaml"
        config.write_text(AGENT.format(address=self.address, agents=self.agents, site=site, probes=probes, admin=admin,
                                       kubeconfig=host_kubeconfig, clusters=clusters))
        self.edge.start(self.agent(site), self.binaries / "proxy-agent", "--config", config)
        for cluster in clusters:
            self.atoll("kubeconfig", cluster, "--admin", "--server-config", self.folder / "server.yaml", "-o",
                       self.kubeconfig(site, cluster))
        namespace = json.dumps({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
        deadline = time.monotonic() + START_TIMEOUT
        # A successful write is the only sign of readiness that all builds have.
        while True:
            try:
                return self.create(site, "/api/v1/namespaces", namespace)
            except Failed as error:
                if self.edge.running[self.agent(site)].poll() is not None or time.monotonic() > deadline:
                    raise
                if "409" in str(error):  # an earlier attempt succeeded after its timeout
                    return None
            time.sleep(0.2)

    def kubeconfig(self, site, cluster=None):
        """The kubeconfig of the administrator, with a client certificate."""
        return self.folder / f"{cluster or SITES[site][0]}.kubeconfig"

    def create(self, site, path, manifest):
        answer = self.processes.run(self.bench, "send", "--method", "POST", "--kubeconfig", self.kubeconfig(site), "--path",
                                    path, stdin=manifest)
        return json.loads(answer)

    def token_kubeconfig(self, site):
        """Of a service account that may read in its namespace, and its token."""
        account, cluster = "bench", SITES[site][0]
        namespace = f"/api/v1/namespaces/{NAMESPACE}"
        self.create(site, f"{namespace}/serviceaccounts", json.dumps(
            {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": account}}))
        self.create(site, f"/apis/rbac.authorization.k8s.io/v1/namespaces/{NAMESPACE}/rolebindings", json.dumps(
            {"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": {"name": account},
             "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
             "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]}))
        request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {"expirationSeconds": 86400}}
        token = self.create(site, f"{namespace}/serviceaccounts/{account}/token", json.dumps(request))["status"]["token"]
        file = self.folder / f"{cluster}.token.kubeconfig"
        self.atoll("kubeconfig", cluster, "--server-config", self.folder / "server.yaml", "--token", token, "-o", file)
        return file, token

    def idle_memory(self):
        """RSS in MB of those processes that run."""
        return {name: memory(self.processes.pid(name)) for name in self.processes.running
                if name == self.server or name.startswith(f"{self.name}-agent-")}

    def description(self):
        """The measured build: the version of the binaries, and a digest that distinguishes two builds."""
        found = {"directory": str(self.binaries)}
        for program in PROGRAMS[:2]:
            found[program] = hashlib.sha256((self.binaries / program).read_bytes()).hexdigest()[:16]
        with contextlib.suppress(Failed):
            found["version"] = self.processes.run(self.binaries / "proxy-server", "--version").strip()
        return found
