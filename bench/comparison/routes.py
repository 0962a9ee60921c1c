"""The routes from a client to an API server."""

import dataclasses

NGINX, KONNECTIVITY, DIRECT, ATOLL, OTHER = "nginx", "konnectivity", "direct", "atoll", "other build"


@dataclasses.dataclass
class Route:
    """`flags(path, credential)` are the flags of `bench load` for a request on this route. `processes` forward it."""

    name: str
    flags: object
    processes: tuple = ()


@dataclasses.dataclass(frozen=True)
class Path:
    """One object, with its path on the host and in the virtual cluster."""

    host: str
    virtual: str


def url_route(name, url, ca, client, token, *more, processes=()):
    """A route with a URL. The credential is a client certificate, or a token that nothing on the route verifies."""
    def flags(path, credential):
        shown = ["--header", f"Authorization: Bearer {token}"] if credential == "token" else \
            ["--certificate", client[0], "--key", client[1]]
        return ["--url", url + path.host, "--ca", ca, *shown, *more]
    return Route(name, flags, processes)


def atoll_route(name, files, processes):
    """`files` are the kubeconfigs by credential."""
    return Route(name, lambda path, credential: ["--kubeconfig", files[credential], "--path", path.virtual], processes)


# The differences between the routes for the same request. They are printed with the results.
DIFFERENCES = {
    DIRECT: ("-", "the upstream", "not looked at", "nothing between client and upstream"),
    NGINX: ("-", "nginx", "not looked at", "HTTP/1.1 to the upstream over kept TLS connections; rewrites and logs nothing"),
    KONNECTIVITY: ("over a Unix socket", "the upstream", "not looked at",
                   "passes bytes of the client's TLS on: one gRPC stream over TLS, and a new TCP connection for each of the "
                   "client's; rewrites and logs nothing"),
    ATOLL: ("over TCP", "proxy-server", "reviewed by the host, cached for 10 s",
            "HTTP/2 on the tunnel and to the host, both over TLS 1.3; impersonates, rewrites, and logs each request"),
}
