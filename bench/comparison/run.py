"""The order of a run: measures, prints and writes."""

import json
import os
import pathlib
import platform
import signal
import sys
import time

from . import cases, hosts, tables
from .atoll import NAMESPACE, SITES
from .budgets import ELSEWHERE, Budgets
from .processes import Failed
from .rounds import Figures
from .routes import ATOLL, DIFFERENCES, DIRECT, KONNECTIVITY, NGINX
from .world import World

WARM_UP = "500ms"
# The time of a run of `bench load` in addition to the measurement, in seconds: warm-up, start and end.
OVERHEAD = 0.9
IDLE_SECONDS = 5


class Comparison:
    def __init__(self, args):
        self.args, self.world = args, World(args)
        self.processes, self.bench = self.world.processes, self.world.bench
        self.results = {"arguments": sys.argv[1:], "machine": machine(), "cases": {}}
        self.figures, self.skipped = {}, {}
        self.stalled = self.engine = self.memory = None

    def run(self):
        chosen = [case for case in cases.SYNTHETIC if self.wants(case.title)]
        with_kube = [case for case in cases.KUBE if self.wants(case.title)]
        watches = self.wants(cases.WATCHES_TITLE)
        missing = hosts.kube_missing()
        if missing and (with_kube or watches):
            self.skipped["kube"] = "skipped"
            self.results["skipped"] = {"kube-apiserver": missing}
            print(f"skipped: kube-apiserver as the host, because {missing}", flush=True)
            with_kube, watches = [], False
        self.estimate(len(chosen) + len(with_kube))
        self.world.start()
        if with_kube or watches:
            print("starting the control plane", flush=True)
            self.world.start_kube()
        self.results["software"] = self.world.software()
        if self.wants(cases.MEMORY_TITLE):
            self.memory = self.idle(cases.MEMORY_TITLE)
        for case in with_kube:
            self.case(case)
        if watches:
            self.watches()
        # No control plane runs during the other measurements.
        self.world.end_kube()
        for case in chosen:
            self.case(case)
        if self.wants(cases.STALLED_TITLE):
            self.stalled_readers()
        if self.wants(cases.ENGINE_TITLE):
            self.micro()
        if self.wants(cases.MEMORY_TITLE):
            self.idle(f"{cases.MEMORY_TITLE} after the load")

    def wants(self, title):
        return self.args.only in title

    def estimate(self, number):
        routes = 1 + len({NGINX, KONNECTIVITY} - self.args.without) + (2 if self.args.against else 1)
        stalled = len(cases.STALLED) * (2 if self.args.against else 1) if self.wants(cases.STALLED_TITLE) else 0
        seconds = (routes * number + stalled) * self.args.rounds * (self.args.seconds + OVERHEAD)
        print(f"measuring takes about {max(seconds / 60, 1):.0f} minutes; starting", flush=True)

    # -- single measurements

    def load(self, route, case, *more):
        """The report of `bench load`, or the text of its failure."""
        try:
            return json.loads(self.processes.run(
                self.bench, "load", *route.flags(case.path, case.credential), *case.flags, *more,
                *self.world.flags_of_processes(route.processes), "--warmup", WARM_UP, "--duration", f"{self.args.seconds}s",
                "--json"))
        except Failed as error:
            return str(error).splitlines()[-1]

    def case(self, case):
        routes = self.world.routes[case.site]
        figures = Figures(case.metric).measure(list(routes), self.args.rounds, lambda name: self.load(routes[name], case),
                                               self.world.cpu_time)
        self.figures[case.key] = figures
        tables.show_case(case.title, figures)
        self.results["cases"][case.key] = {"title": case.title} | figures.json()
        self.write()

    def stalled_readers(self):
        """Small GETs of one client while others request a long log and do not read it, through Atoll only."""
        steady = next(case for case in cases.SYNTHETIC if case.key == "steady")
        names = [f"{number} reader" + ("" if number == 1 else "s") for number in cases.STALLED]
        found = {}
        for build in self.world.builds:
            route = self.world.routes["dev"][build]

            def load(name, route=route):
                return self.load(route, steady, "--stalled", name.split()[0], "--stalled-path", cases.LOG.virtual)
            found[build] = Figures("p99 ms").measure(names, self.args.rounds, load, self.world.cpu_time)
        self.stalled = found[ATOLL]
        tables.show_stalled(cases.STALLED_TITLE, found)
        self.results["stalled"] = {name: figures.json() for name, figures in found.items()}
        self.write()

    def watches(self):
        """Measures each route once, because a figure is a quantile of thousands of deliveries."""
        routes = {DIRECT: ["--kubeconfig", self.world.kube_hosts[ATOLL].admin_kubeconfig, "--namespace",
                           f"{NAMESPACE}-{SITES['kube'][0]}"]}
        for name, build in self.world.builds.items():
            routes[name] = ["--kubeconfig", build.kubeconfig("kube"), "--namespace", NAMESPACE,
                            *self.world.flags_of_processes(build.processes_of("kube"))]
        found = {name: json.loads(self.processes.run(
            self.bench, "watch", *flags, "--watchers", 100, "--rate", 20, "--duration", f"{2 * self.args.seconds}s", "--json"))
            for name, flags in routes.items()}
        tables.show_watches(cases.WATCHES_TITLE, found)
        self.results["watches"] = found
        self.write()

    def idle(self, title):
        time.sleep(IDLE_SECONDS)
        found = {}
        for build in self.world.builds.values():
            found |= build.idle_memory()
        tables.show_memory(title, found)
        self.results[title] = found
        return found

    def micro(self):
        """The fastest of seven rounds. Measures only the engine of this build."""
        self.engine = json.loads(self.processes.run(self.bench, "micro", "--pods", 500, "--pods", 5000, "--json"))
        print(f"\n{cases.ENGINE_TITLE}: see the budgets", flush=True)
        self.results["engine"] = self.engine

    def hold(self):
        self.world.start()
        for name, route in self.world.routes["dev"].items():
            words = [*route.flags(cases.SMALL, "certificate"), *self.world.flags_of_processes(route.processes)]
            print(f"\n{name}:\n  bench load " + " ".join(f"'{word}'" for word in words))
        print("\nCtrl-C ends everything.", flush=True)
        signal.pause()

    # -- the end

    def measured(self):
        return any((self.figures, self.stalled, self.engine, self.memory))

    def summarize(self):
        if self.figures:
            tables.show_differences(self.figures)
        budgets = Budgets(self.figures, self.skipped, self.stalled, self.memory, self.engine)
        rows, notes = budgets.rows(), [ELSEWHERE, *budgets.doubts()]
        tables.show_budgets(rows, notes)
        self.results |= {"budgets": [row.json() for row in rows], "notes": notes, "differences": DIFFERENCES}
        self.write()

    def write(self):
        (self.args.dir / "results.json").write_text(json.dumps(self.results, indent=1, default=str))

    def end(self):
        self.world.end()


def machine():
    model = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                  if line.startswith("model name")), "")
    return {"cpus": os.cpu_count(), "model": model, "kernel": platform.release(), "loadAverage": os.getloadavg(),
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())}
