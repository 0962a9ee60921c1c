"""The cases: the rows of the table of budgets in DESIGN.md (section 13) that one machine can measure."""

import dataclasses

from .atoll import NAMESPACE, SITES
from .routes import Path


@dataclasses.dataclass(frozen=True)
class Case:
    """One request on all routes to one host. The routes are compared by `metric`."""

    key: str
    title: str
    path: Path
    flags: tuple
    site: str = "dev"
    metric: str = "requests/s"
    credential: str = "certificate"


def path(site, rest):
    return Path(f"/api/v1/namespaces/{NAMESPACE}-{SITES[site][0]}/{rest}", f"/api/v1/namespaces/{NAMESPACE}/{rest}")


SMALL = path("dev", "pods/bench-small")
LIST = path("dev", "pods?labelSelector=app%3Dfrontend")
LOG = path("dev", "pods/bench-small/log")
CONFIG_MAP = path("kube", "configmaps/bench-0")
CONFIG_MAPS = path("kube", "configmaps")

# kubectl has one request at a time; 32 measure latency as much as cost; 128 measure capacity.
WORKERS = (1, 32, 128)
# The connections that the workers of an HTTP/2 case share.
CONNECTIONS = 4


def small(http, workers):
    """Over HTTP/1.1, each worker has its own connection."""
    shared = ("--connections", str(CONNECTIONS)) if http == 2 and workers > CONNECTIONS else ()
    title = f"small GET, {VERSIONS[http]}, {workers} worker" + ("s" if workers > 1 else "")
    return Case(f"small-h{http}-{workers}", title + (f" on {CONNECTIONS} connections" if shared else ""), SMALL,
                ("--http", str(http), "--concurrency", str(workers), *shared))


VERSIONS = {1: "HTTP/1.1", 2: "HTTP/2"}
SYNTHETIC = [
    *(small(http, workers) for workers in WORKERS for http in VERSIONS),
    *(Case(f"list-h{http}", f"list of 15.6 MB, {version}, 4 workers" + (" on one connection" if http == 2 else ""), LIST,
           ("--http", str(http), "--concurrency", "4"), metric="MB/s") for http, version in VERSIONS.items()),
    *(Case(f"fresh-{credential}", f"new connection for each small GET, with a {words}, 8 workers", SMALL,
           ("--fresh", "--concurrency", "8"), credential=credential)
      for credential, words in {"certificate": "client certificate", "token": "token"}.items()),
    Case("steady", "small GET, HTTP/1.1, open loop, 1000/s", SMALL, ("--http", "1", "--rate", "1000"), metric="p99 ms"),
]
KUBE = [
    Case("kube-get", "kube-apiserver: one ConfigMap, HTTP/2, 16 workers on one connection", CONFIG_MAP,
         ("--http", "2", "--concurrency", "16"), site="kube"),
    Case("kube-list", "kube-apiserver: list of 300 ConfigMaps, 1.0 MB, HTTP/2, 4 workers on one connection", CONFIG_MAPS,
         ("--http", "2", "--concurrency", "4"), site="kube", metric="MB/s"),
]
# Small GETs with this number of readers that request a log of 15.6 MB and do not read it. Not a list: a virtual cluster
# can have only three unread lists, because they occupy seats of the host.
STALLED = (0, 1, 100)
STALLED_TITLE = "small GET, HTTP/1.1, open loop, 1000/s, beside stalled readers"
WATCHES_TITLE = "kube-apiserver: 100 watches of ConfigMaps, 20 changes a second"
ENGINE_TITLE = "engine: a list of 5,000 pods, and request bodies"
MEMORY_TITLE = "idle memory"
