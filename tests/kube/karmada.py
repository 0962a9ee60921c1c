"""A Karmada control plane on loopback, beside the cluster that tests/kube/up starts."""

import concurrent.futures
import shutil

from plane import BIN, Plane, say

# What tests/kube/build took out of Karmada's sources: its CRDs and the objects that its installers apply.
MANIFESTS = BIN.parent / "karmada"
SYSTEM = "karmada-system"
AGGREGATED = "karmada-aggregated-apiserver"
WEBHOOK = "karmada-webhook"
# As Karmada's installers name them in certificates, by the Services that they stand behind.
SERVERS = ("karmada-apiserver", AGGREGATED, WEBHOOK)
CLIENTS = (AGGREGATED, WEBHOOK, "karmada-controller-manager", "karmada-scheduler", "kube-controller-manager")
# Karmada's own set: there are no nodes nor pods here, and Deployments are templates that nobody runs.
CONTROLLERS = "namespace,garbagecollector,serviceaccount-token,ttl-after-finished,clusterrole-aggregation"


class Karmada(Plane):
    PORTS = 10
    PROGRAMS = ("karmadactl", "karmada-aggregated-apiserver", "karmada-controller-manager", "karmada-scheduler",
                "karmada-webhook")
    NAME = FIRST = "karmada-apiserver"

    def __init__(self, cluster, ports, whole=False):
        """`whole` is with every feature and controller, as Karmada is installed for its own suite."""
        self.files = cluster.dir / "karmada"
        self.files.mkdir()
        super().__init__(cluster.dir, self.files / "pki", cluster.procs)
        (api, self.etcd, self.peer, self.kcm, self.aggregated, self.webhook, self.manager_health,
         self.scheduler_health, self.manager_metrics, self.scheduler_metrics) = ports
        self.api = [api]
        self.gates = ["--feature-gates=AllAlpha=true,AllBeta=true"] if whole else []
        self.controllers = ["--controllers=*,hpaScaleTargetMarker,deploymentReplicasSyncer"] if whole else []

    def make_keys(self):
        pki = self.pki
        pki.ca("ca")
        jobs = [(name, "ca", f"/CN=system:karmada:{name}", "serverAuth",
                 [f"DNS:{name}.{SYSTEM}.svc", f"DNS:{name}.{SYSTEM}.svc.cluster.local", "DNS:localhost", "IP:127.0.0.1"])
                for name in SERVERS]
        jobs += [(f"{name}-client", "ca", f"/O=system:masters/CN=system:karmada:{name}", "clientAuth") for name in CLIENTS]
        # The name that Karmada's rule for clusters/proxy is bound to.
        jobs.append(("admin", "ca", "/O=system:masters/CN=system:admin", "clientAuth"))
        jobs.append(("front-proxy-client", "ca", "/CN=front-proxy-client", "clientAuth"))
        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(pki.service_account_key)] + [pool.submit(pki.cert, *job) for job in jobs]:
                done.result()

    def client(self, name):
        return self.own_kubeconfig(f"{name}-client", f"karmada/pki/{name}.kubeconfig")

    def serving(self, name):
        return [f"--tls-cert-file={self.pki.dir}/{name}.crt", f"--tls-private-key-file={self.pki.dir}/{name}.key"]

    # -- the parts, in the order they start

    def start_apiserver(self):
        pki = self.pki.dir
        self.start(
            "karmada-apiserver", "kube-apiserver", f"--etcd-servers=http://127.0.0.1:{self.etcd}",
            "--bind-address=127.0.0.1", f"--secure-port={self.api[0]}",
            # Nobody looks for it by its Service, and loopback is refused there.
            "--advertise-address=192.0.2.1", "--endpoint-reconciler-type=none",
            "--service-cluster-ip-range=10.96.0.0/12", *self.serving("karmada-apiserver"), "--tls-min-version=VersionTLS13",
            f"--client-ca-file={pki}/ca.crt",
            f"--service-account-key-file={pki}/sa.pub", f"--service-account-signing-key-file={pki}/sa.key",
            "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
            "--authorization-mode=Node,RBAC", "--allow-privileged=true",
            "--disable-admission-plugins=StorageObjectInUseProtection,ServiceAccount",
            f"--requestheader-client-ca-file={pki}/ca.crt", "--requestheader-allowed-names=front-proxy-client",
            "--requestheader-username-headers=X-Remote-User", "--requestheader-group-headers=X-Remote-Group",
            "--requestheader-extra-headers-prefix=X-Remote-Extra-",
            f"--proxy-client-cert-file={pki}/front-proxy-client.crt",
            f"--proxy-client-key-file={pki}/front-proxy-client.key")

    def start_servers(self):
        """What the API server needs before it has all of its APIs."""
        own = self.client("kube-controller-manager")
        kinds = ("kubeconfig", "authentication-kubeconfig", "authorization-kubeconfig")
        pki = self.pki.dir
        self.start(
            "karmada-kube-controller-manager", "kube-controller-manager", *(f"--{kind}={own}" for kind in kinds),
            "--bind-address=127.0.0.1", f"--secure-port={self.kcm}", *self.serving("karmada-apiserver"),
            "--leader-elect=false", "--cluster-name=karmada", f"--controllers={CONTROLLERS}",
            "--use-service-account-credentials", f"--service-account-private-key-file={pki}/sa.key",
            f"--root-ca-file={pki}/ca.crt")
        own = self.client(AGGREGATED)
        self.start(
            AGGREGATED, AGGREGATED, *(f"--{kind}={own}" for kind in kinds),
            f"--etcd-servers=http://127.0.0.1:{self.etcd}",
            "--bind-address=127.0.0.1", f"--secure-port={self.aggregated}", *self.serving(AGGREGATED),
            "--tls-min-version=VersionTLS13")
        self.start(
            WEBHOOK, WEBHOOK, f"--kubeconfig={self.client(WEBHOOK)}", "--bind-address=127.0.0.1",
            f"--secure-port={self.webhook}", f"--cert-dir={pki}", f"--tls-cert-file-name={WEBHOOK}.crt",
            f"--tls-private-key-file-name={WEBHOOK}.key", "--metrics-bind-address=0",
            "--health-probe-bind-address=0", "--allow-no-execute-taint-policy=true", *self.gates)

    def start_managers(self):
        self.start(
            "karmada-controller-manager", "karmada-controller-manager",
            f"--kubeconfig={self.client('karmada-controller-manager')}", "--leader-elect=false",
            f"--metrics-bind-address=127.0.0.1:{self.manager_metrics}",
            f"--health-probe-bind-address=127.0.0.1:{self.manager_health}", "--v=2",
            # A taint of effect NoExecute moves what is on a member, which is off by default.
            "--enable-no-execute-taint-eviction=true", *(self.gates or ["--feature-gates=Failover=true"]),
            *self.controllers)
        self.start(
            "karmada-scheduler", "karmada-scheduler", f"--kubeconfig={self.client('karmada-scheduler')}",
            "--leader-elect=false", f"--metrics-bind-address=127.0.0.1:{self.scheduler_metrics}",
            f"--health-probe-bind-address=127.0.0.1:{self.scheduler_health}", "--v=2", *self.gates)

    # -- its APIs

    def manifests(self):
        """Karmada's objects, with the places that its installers fill in filled in for loopback."""
        target = self.files / "manifests"
        shutil.copytree(MANIFESTS, target)
        address = f"https://127.0.0.1:{self.webhook}"
        for path in target.rglob("*.yaml"):
            text = path.read_text()
            filled = text.replace("https://{{name}}.{{namespace}}.svc:443", address)
            filled = filled.replace(f"https://{WEBHOOK}.{SYSTEM}.svc:443", address)
            filled = filled.replace("{{caBundle}}", self.pki.data("ca.crt"))
            if filled != text:
                path.write_text(filled)
        return target

    def apply(self, *args):
        # Server-side: some of the CRDs are too long for the annotation of the other way.
        self.kubectl("karmada.kubeconfig", "apply", "--server-side", *args)

    def create_apis(self):
        self.create("/api/v1/namespaces", {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": SYSTEM}})
        manifests = self.manifests()
        self.apply("-k", manifests / "crds")
        self.kubectl("karmada.kubeconfig", "wait", "--for=condition=Established", "--timeout=30s", "crd", "--all")
        # As Karmada's installers do it; the port is ours, since nothing here listens on 443.
        self.create(f"/api/v1/namespaces/{SYSTEM}/services", {
            "apiVersion": "v1", "kind": "Service", "metadata": {"name": AGGREGATED},
            "spec": {"type": "ExternalName", "externalName": "localhost"},
        })
        self.create("/apis/apiregistration.k8s.io/v1/apiservices", {
            "apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService",
            "metadata": {"name": "v1alpha1.cluster.karmada.io"},
            "spec": {"group": "cluster.karmada.io", "version": "v1alpha1", "groupPriorityMinimum": 2000,
                     "versionPriority": 10, "caBundle": self.pki.data("ca.crt"),
                     "service": {"name": AGGREGATED, "namespace": SYSTEM, "port": self.aggregated}},
        })
        return manifests

    def protect(self, manifests):
        """The webhooks and the rules of access, once who answers the webhooks is there."""
        for name in ("webhook-configuration", "admin-clusterrole-aggregation", "cluster-proxy-admin-rbac"):
            self.apply("-f", manifests / f"{name}.yaml")

    def available(self):
        _, service = self.request("GET", "/apis/apiregistration.k8s.io/v1/apiservices/v1alpha1.cluster.karmada.io")
        conditions = service.get("status", {}).get("conditions", [])
        return any(c["type"] == "Available" and c["status"] == "True" for c in conditions) or str(conditions)

    def answers(self, port, path):
        return lambda: (answer := self.plain(port, path)) == b"ok" or str(answer)

    def run(self):
        say(f"starting Karmada: its API server at {self.url()}")
        self.start_etcd("karmada-etcd", self.etcd, self.peer)
        self.make_keys()
        self.own_kubeconfig("admin", "karmada.kubeconfig")
        self.wait_etcd("karmada-etcd", self.etcd)
        self.start_apiserver()
        self.wait("karmada-apiserver is ready", "karmada-apiserver", self.healthy(self.api[0], "/readyz"), 120)
        manifests = self.create_apis()
        self.start_servers()
        self.wait(f"{WEBHOOK} is ready", WEBHOOK, self.healthy(self.webhook, "/readyz/"), 60)
        self.protect(manifests)
        self.wait("cluster.karmada.io is served", AGGREGATED, self.available, 60)
        self.wait("Karmada's kube-controller-manager is healthy", "karmada-kube-controller-manager",
                  self.healthy(self.kcm, "/healthz"), 60)
        self.start_managers()
        self.wait("karmada-controller-manager is healthy", "karmada-controller-manager",
                  self.answers(self.manager_health, "/healthz"), 60)
        self.wait("karmada-scheduler is healthy", "karmada-scheduler", self.answers(self.scheduler_health, "/healthz"), 60)
