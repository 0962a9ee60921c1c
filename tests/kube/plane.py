"""What the control planes of tests/kube are made of: ports, keys, processes, and requests to an API server."""

import base64
import http.client
import json
import os
import pathlib
import random
import socket
import ssl
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BIN = pathlib.Path(os.environ.get("ATOLL_KUBE_BIN") or ROOT / "target" / "kube" / "bin")


class Failed(Exception):
    """What went wrong; `component` names the log to show."""

    def __init__(self, message, component=None):
        super().__init__(message)
        self.component = component


started_at = time.monotonic()


def say(message):
    print(f"[{time.monotonic() - started_at:5.1f} s] {message}", flush=True)


# ---- ports

class Ports:
    """Free ports on 127.0.0.1, held (bound, not listening) until released, so
    that clusters started at the same time do not pick the same ones."""

    def __init__(self, base):
        self.base = base
        self.held = []

    def take(self, count):
        if self.base is not None:
            for port in range(self.base, self.base + count):
                if not self._hold(port):
                    raise Failed(f"port {port} on 127.0.0.1 is in use: choose another --port-base, or leave it out")
            return list(range(self.base, self.base + count))
        # Below the range that the kernel gives to outgoing connections.
        for _ in range(200):
            base = random.randrange(12000, 32000 - count)
            if all(self._hold(port) for port in range(base, base + count)):
                return list(range(base, base + count))
            self.release()
        raise Failed(f"found no {count} free ports in a row between 12000 and 32000")

    def _hold(self, port):
        # Without SO_REUSEADDR this fails if anyone holds or listens; with it,
        # the component can listen while we hold.
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                return False
        holder = socket.socket()
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            holder.bind(("127.0.0.1", port))
        except OSError:
            holder.close()
            return False
        self.held.append(holder)
        return True

    def release(self):
        for holder in self.held:
            holder.close()
        self.held = []


# ---- keys and certificates

class Pki:
    def __init__(self, folder):
        self.dir = folder
        folder.mkdir(mode=0o700)

    def _run(self, *args, stdin=None):
        done = subprocess.run(["openssl", *args], input=stdin, capture_output=True, text=True, cwd=self.dir)
        if done.returncode != 0:
            raise Failed(f"openssl {' '.join(args)}: {done.stderr.strip()}")

    def ca(self, name):
        self._run("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                  "-keyout", f"{name}.key", "-out", f"{name}.crt", "-days", "30", "-subj", f"/CN={name}",
                  "-addext", "keyUsage=critical,keyCertSign,cRLSign,digitalSignature")

    def cert(self, name, ca, subject, usage, sans=()):
        ext = self.dir / f"{name}.ext"
        lines = ["basicConstraints=critical,CA:FALSE", "keyUsage=critical,digitalSignature",
                 f"extendedKeyUsage={usage}"]
        if sans:
            lines.append("subjectAltName=" + ",".join(sans))
        ext.write_text("\n".join(lines) + "\n")
        self._run("req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                  "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", subject)
        self._run("x509", "-req", "-in", f"{name}.csr", "-CA", f"{ca}.crt", "-CAkey", f"{ca}.key",
                  "-set_serial", f"0x{os.urandom(16).hex()}", "-days", "30", "-extfile", ext.name, "-out", f"{name}.crt")
        ext.unlink()
        (self.dir / f"{name}.csr").unlink()

    def service_account_key(self):
        self._run("genpkey", "-algorithm", "RSA", "-pkeyopt", "rsa_keygen_bits:2048", "-out", "sa.key")
        self._run("pkey", "-in", "sa.key", "-pubout", "-out", "sa.pub")

    def data(self, name):
        return base64.b64encode((self.dir / name).read_bytes()).decode()


def kubeconfig(server, ca_data, user, namespace="default", name="host"):
    """`user` is the body of the user entry: a list of `key: value` lines."""
    body = "\n".join("    " + line for line in user)
    return f"""apiVersion: v1
kind: Config
clusters:
- name: {name}
  cluster:
    server: {server}
    certificate-authority-data: {ca_data}
contexts:
- name: {name}
  context:
    cluster: {name}
    user: user
    namespace: {namespace}
current-context: {name}
users:
- name: user
  user:
{body}
"""


# ---- processes

class Plane:
    """The processes of one control plane, and its administrator."""

    NAME = "host"  # of its contexts in kubeconfigs
    FIRST = "kube-apiserver-1"  # whose log tells why a request failed

    def __init__(self, folder, pki, procs):
        self.dir = folder
        self.pki = Pki(pki)
        self.procs = procs  # by name, of everything that was started in this folder

    def write(self, name, text, mode=0o600):
        path = self.dir / name
        path.write_text(text)
        path.chmod(mode)
        return str(path)

    def start(self, name, program, *flags):
        """Writes DIR/run/NAME, which makes the pid file, and runs it, detached, with a log."""
        script = self.dir / "run" / name
        quoted = " \\\n    ".join("'" + flag.replace("'", "'\\''") + "'" for flag in flags)
        script.write_text(f"#!/bin/sh -e\ncd '{self.dir}'\necho $$ >pids/{name}\nexec '{BIN / program}' \\\n    {quoted}\n")
        script.chmod(0o755)
        # The suites set GOMAXPROCS, because they run several hosts at the same time.
        env = {k: v for k, v in os.environ.items() if k in ("PATH", "TZ", "LANG", "TMPDIR", "GOMAXPROCS")}
        env["HOME"] = str(self.dir)
        # Less garbage collection: the hosts of a suite need most of its CPU time, and there is enough memory.
        env["GOGC"] = "400"
        with open(self.dir / "logs" / f"{name}.log", "ab") as log:
            proc = subprocess.Popen([script], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                    start_new_session=True, env=env)
        self.procs[name] = proc
        (self.dir / "pids" / name).write_text(f"{proc.pid}\n")  # the same, without a wait

    def check_alive(self):
        for name, proc in self.procs.items():
            if proc.poll() is not None:
                raise Failed(f"{name} ended with {proc.returncode}", name)

    def wait(self, what, component, probe, limit):
        deadline = time.monotonic() + limit
        last = "no answer yet"
        while True:
            self.check_alive()
            try:
                answer = probe()
                if answer is True:
                    return
                last = answer
            except (OSError, http.client.HTTPException, ValueError) as error:
                last = error
            if time.monotonic() > deadline:
                raise Failed(f"{what}: not within {limit} s (last: {last})", component)
            time.sleep(0.1)

    # -- what every plane stands on

    def start_etcd(self, name, client, peer):
        client, peer = f"http://127.0.0.1:{client}", f"http://127.0.0.1:{peer}"
        self.start(
            name, "etcd", f"--name={name}", f"--data-dir={self.dir}/{name}", "--unsafe-no-fsync",
            f"--listen-client-urls={client}", f"--advertise-client-urls={client}",
            f"--listen-peer-urls={peer}", f"--initial-advertise-peer-urls={peer}", f"--initial-cluster={name}={peer}",
            "--quota-backend-bytes=4294967296", "--watch-progress-notify-interval=5s", "--log-level=warn")

    def wait_etcd(self, name, client):
        self.wait(f"{name} is healthy", name, lambda: b'"true"' in self.plain(client, "/health") or "not healthy", 20)

    # -- talking to it

    def plain(self, port, path):
        """The body of an answer over plain HTTP."""
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
        try:
            connection.request("GET", path)
            return connection.getresponse().read()
        finally:
            connection.close()

    def context(self):
        context = ssl.create_default_context(cafile=self.pki.dir / "ca.crt")
        context.load_cert_chain(self.pki.dir / "admin.crt", self.pki.dir / "admin.key")
        return context

    def request(self, method, path, body=None, port=None):
        """(status, parsed or text body) of one request as cluster administrator."""
        connection = http.client.HTTPSConnection("127.0.0.1", port or self.api[0], timeout=10, context=self.context())
        try:
            headers = {"Accept": "application/json", "User-Agent": "tests-kube-up"}
            if body is not None:
                body = json.dumps(body)
                headers["Content-Type"] = "application/json"
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            text = response.read().decode()
            if response.headers.get("Content-Type", "").startswith("application/json"):
                return response.status, json.loads(text)
            return response.status, text
        finally:
            connection.close()

    def healthy(self, port, path):
        def probe():
            status, body = self.request("GET", path, port=port)
            return True if status == 200 else f"{status} {body}"
        return probe

    def create(self, path, body):
        status, answer = self.request("POST", path, body)
        if status not in (200, 201, 409):
            raise Failed(f"POST {path}: {status} {answer}", self.FIRST)

    def url(self):
        """Of the API server, the first if there are several."""
        return f"https://127.0.0.1:{self.api[0]}"

    def own_kubeconfig(self, user, path):
        """Writes a kubeconfig for the client certificate `user`."""
        return self.write(path, kubeconfig(
            self.url(), self.pki.data("ca.crt"),
            [f"client-certificate-data: {self.pki.data(user + '.crt')}", f"client-key-data: {self.pki.data(user + '.key')}"],
            name=self.NAME))

    def kubectl(self, path, *args, limit=60):
        """kubectl with the kubeconfig `path`, which must succeed."""
        done = subprocess.run([BIN / "kubectl", f"--kubeconfig={self.dir / path}", *args], capture_output=True, text=True,
                              timeout=limit, env={"HOME": str(self.dir), "PATH": os.environ.get("PATH", "")})
        if done.returncode != 0:
            raise Failed(f"kubectl {' '.join(map(str, args))} failed: {done.stderr.strip()}", self.FIRST)
        return done.stdout
