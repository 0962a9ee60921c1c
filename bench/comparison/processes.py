"""Starts, watches and ends processes, and reads their CPU time and memory from /proc."""

import contextlib
import os
import pathlib
import random
import socket
import subprocess
import time

START_TIMEOUT = 60  # seconds until a started process must be ready
END_TIMEOUT = 4  # seconds until a process gets a second signal, and then SIGKILL
COMMAND_TIMEOUT = 300  # the time limit of a command in seconds
TICKS_PER_SECOND = os.sysconf("SC_CLK_TCK")


class Failed(Exception):
    """The benchmark cannot continue. The text has the reason."""


class Processes:
    """The processes of one run. All of them end with it. `within` are the words before each command, such as
    `ip netns exec NAME`, which replace themselves by the command."""

    def __init__(self, folder, within=()):
        self.folder, self.within = folder, within
        self.running = {}

    def run(self, *command, stdin=None):
        """Runs a command, and returns its output."""
        words = [str(word) for word in (*self.within, *command)]
        try:
            done = subprocess.run(words, capture_output=True, text=True, input=stdin, timeout=COMMAND_TIMEOUT)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"{' '.join(words)}\nnot done in {COMMAND_TIMEOUT} s") from error
        if done.returncode != 0:
            raise Failed(f"{' '.join(words)}\n{done.stderr.strip()}")
        return done.stdout

    def start(self, name, *command, until=None):
        """Starts a process with its output in NAME.log, and waits until this text is in it."""
        log = self.folder / f"{name}.log"
        # Do not use a proxy of the environment for loopback. Measure with the default log level.
        environment = {key: value for key, value in os.environ.items() if key.upper() not in ("HTTPS_PROXY", "RUST_LOG")}
        with open(log, "wb") as output:
            process = subprocess.Popen([str(word) for word in (*self.within, *command)], stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=output, env=environment)
        self.running[name] = process
        if until:
            self.wait(f"{name} prints {until!r}", lambda: until in log.read_text(), name)
        return log

    def wait(self, what, condition, name=None):
        """Waits until the condition holds. Fails at once if the process `name` ends."""
        process = self.running.get(name)
        deadline = time.monotonic() + START_TIMEOUT
        while not condition():
            if process and process.poll() is not None:
                raise Failed(f"{name} ended with {process.returncode}; see {self.folder}/{name}.log")
            if time.monotonic() > deadline:
                raise Failed(f"not within {START_TIMEOUT} s: {what}; see the logs in {self.folder}")
            time.sleep(0.1)

    def pid(self, name):
        return self.running[name].pid

    def end(self, *names):
        """Ends these processes in reverse order of their start; all of them if no name is given."""
        chosen = {name: self.running.pop(name) for name in list(self.running) if not names or name in names}
        # konnectivity's agent drains after the first signal and ends after the second.
        for stop in (subprocess.Popen.terminate, subprocess.Popen.terminate, subprocess.Popen.kill):
            alive = [process for process in reversed(chosen.values()) if process.poll() is None]
            for process in alive:
                stop(process)
            deadline = time.monotonic() + END_TIMEOUT
            for process in alive:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(max(deadline - time.monotonic(), 0))


def free_ports(count):
    """Ports below the range that the kernel uses for outgoing connections, in which konnectivity refuses to listen."""
    ports = []
    while len(ports) < count:
        port = random.randrange(20000, 32000)
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            if port not in ports:
                ports.append(port)
    return ports


def connects(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def memory(pid):
    """VmRSS in MB."""
    status = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


class CpuTime:
    """The CPU seconds of the machine and of some processes since this object was made."""

    def __init__(self, pids):
        self.pids = pids
        self.before = self.now()

    def now(self):
        own = sum(os.times()[:4]) + sum(seconds(pid) for pid in self.pids())
        return machine_seconds(), own

    def others(self):
        """The part of the time of all CPUs that other work used since then, between 0 and 1."""
        (total, busy), own = self.before
        (total_now, busy_now), own_now = self.now()
        elapsed = max(total_now - total, 1e-9)
        return max((busy_now - busy) - (own_now - own), 0) / elapsed


def machine_seconds():
    """The CPU seconds of all CPUs, and how many of them were not idle (proc_stat(5)). Time stolen from this virtual
    machine counts as other work."""
    fields = pathlib.Path("/proc/stat").read_text().split("\n", 1)[0].split()[1:9]
    user, nice, system, idle, iowait, irq, softirq, steal = (int(field) / TICKS_PER_SECOND for field in fields)
    busy = user + nice + system + irq + softirq + steal
    return busy + idle + iowait, busy


def seconds(pid):
    """The CPU seconds of a process and of its descendants; 0 after its end."""
    total = 0
    with contextlib.suppress(OSError):
        fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
        total = sum(int(field) for field in fields[11:15]) / TICKS_PER_SECOND
        for children in pathlib.Path(f"/proc/{pid}/task").glob("*/children"):
            total += sum(seconds(child) for child in children.read_text().split())
    return total
