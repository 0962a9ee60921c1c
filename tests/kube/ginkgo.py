"""Builds the end-to-end suite of another project from Go modules, runs it, and reads its report."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import time

from plane import Failed, say

GINKGO = "github.com/onsi/ginkgo/v2/ginkgo"


def environment():
    return {**os.environ, "GOTOOLCHAIN": "local", "GOWORK": "off", "CGO_ENABLED": "0"}


def build(module, suite, binary):
    """The package `suite` as `binary`, and beside it ginkgo, which runs it, in the versions of the folder `module`. Go's own
    cache decides what there is to do."""
    if not shutil.which("go"):
        raise Failed("go is not installed, or not in PATH")
    binary.parent.mkdir(parents=True, exist_ok=True)
    flags = ["-mod=readonly", "-trimpath", "-buildvcs=false", "-ldflags=-s -w"]
    for command in (["build", *flags, "-o", binary.parent / "ginkgo", GINKGO],
                    ["test", "-c", *flags, "-o", binary, suite]):
        if subprocess.run(["nice", "-n", "15", "go", *command], cwd=module, env=environment()).returncode:
            raise Failed("go could not build the suite (see above); check GOPROXY and the network")


def sources(module, name):
    """Where Go keeps the sources of the module `name`."""
    done = subprocess.run(["go", "list", "-m", "-f", "{{.Dir}}", name], cwd=module, env=environment(), capture_output=True,
                          text=True)
    if done.returncode:
        raise Failed(f"the sources of {name} are not there: {done.stderr.strip()}")
    return pathlib.Path(done.stdout.strip())


def run(binary, folder, env, options, arguments, total=None):
    """The reports of all specs. `folder` gets suite.log, report.json and junit.xml. `options` are ginkgo's, `arguments` the
    suite's own, and `total` is how many specs there are, if that is known."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    command = [binary.parent / "ginkgo", "--no-color", "--json-report", report.name, "--junit-report", "junit.xml",
               "--output-dir", folder, *options, binary, "--", *arguments]
    path = folder / "suite.log"
    with open(path, "wb") as log:
        ginkgo = subprocess.Popen([str(word) for word in command], cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log,
                                  stderr=log, start_new_session=True)
    try:
        follow(ginkgo, path, total)
    finally:
        # Its processes as well, if this one is to end.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(ginkgo.pid, signal.SIGTERM)
        ginkgo.wait()
    if not report.exists():
        raise Failed(f"the suite did not run: see {path}")
    return json.loads(report.read_text())[0]["SpecReports"]


def follow(ginkgo, path, total, interval=60):
    """Waits for the end, and prints how far it is."""
    of = f" of {total}" if total else ""
    while True:
        try:
            ginkgo.wait(interval)
            return
        except subprocess.TimeoutExpired:
            # ginkgo prints one bullet for each spec that it has run.
            log = path.read_text(errors="replace")
            say(f"{log.count('•')}{of} specs are done, {log.count('• [FAILED]')} failed")


def why(spec):
    """What the suite says of a spec that did not pass, in a line, and where it says so."""
    failure = spec.get("Failure")
    if not failure:
        return ""
    said = [line.strip() for line in failure["Message"].splitlines()]
    said = " ".join(line for line in said if line and not line.startswith(("Timed out", "The function passed")))
    place = failure.get("Location") or {}
    return f"{said[:160]} ({pathlib.Path(place.get('FileName', '')).name}:{place.get('LineNumber', '')})"
