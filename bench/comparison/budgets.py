"""Compares the measured figures with the budgets of DESIGN.md, section 13."""

import dataclasses
import operator

from .cases import VERSIONS, WORKERS
from .routes import ATOLL, DIRECT, KONNECTIVITY, NGINX, OTHER

AT_LEAST, AT_MOST = operator.ge, operator.le
SIGNS = {AT_LEAST: ">=", AT_MOST: "<="}
UNMEASURED = "-"
NOT_SELECTED = "not selected"

# These rows of the table need more agents, clusters or machines.
ELSEWHERE = ("not measured by bench/hops: memory of each further idle cluster and tunnel, 1,000 virtual clusters, one event "
             "among 500 clusters, 5,000 agents, an idle Karmada member, rolling restarts")
ROUNDS_FOR_A_CLAIM = 10
OTHER_WORK_FOR_A_CLAIM = 0.1


@dataclasses.dataclass
class Row:
    """One figure and its two bounds."""

    what: str
    measured: float | None
    holds: object
    first: float
    target: float
    unit: str = "x"
    digits: int = 2
    reason: str = ""  # why there is no figure, or why it does not count

    def met(self):
        if self.measured is None:
            return f"{UNMEASURED} ({self.reason})"
        if self.reason:
            return f"no ({self.reason})"
        if self.holds(self.measured, self.target):
            return "target"
        return "first figure" if self.holds(self.measured, self.first) else "no"

    def texts(self):
        def figure(value):
            return f"{value:.{self.digits}f} {self.unit}"
        bound = [f"{SIGNS[self.holds]} {value:g} {self.unit}" for value in (self.first, self.target)]
        return (self.what, UNMEASURED if self.measured is None else figure(self.measured), *bound, self.met())

    def json(self):
        what, _, first, target, met = self.texts()
        return {"budget": what, "measured": self.measured, "unit": self.unit, "first": first, "target": target, "met": met}


class Budgets:
    """`cases` are figures by key, `skipped` are reasons by site, `stalled` are figures of Atoll by readers, `memory` is MB
    by process, `engine` is the output of `bench micro --json`."""

    def __init__(self, cases, skipped, stalled=None, memory=None, engine=None):
        self.cases, self.skipped, self.stalled, self.memory, self.engine = cases, skipped, stalled, memory, engine

    def ratio(self, what, key, other, holds, first, target, metric=None):
        figures = self.cases.get(key)
        row = Row(what, None, holds, first, target)
        if figures is None:
            row.reason = self.skipped.get(key.split("-")[0], NOT_SELECTED)
        elif other not in figures.reports:
            row.reason = "needs --against" if other == OTHER else f"without {other}"
        else:
            row.measured = figures.ratio(ATOLL, other, metric)
            row.reason = "failed" if row.measured is None else "with errors" if figures.failures(ATOLL) else ""
        return row

    def rows(self):
        return [*self.small(), *self.lists(), *self.fresh(), *self.kube(), *self.readers(), *self.rewriting(),
                *self.idle()]

    def small(self):
        for workers in WORKERS[1:]:
            for http, version in VERSIONS.items():
                key, what = f"small-h{http}-{workers}", f"small GET, {version}, {workers} workers"
                yield self.ratio(f"{what}: requests/s vs nginx", key, NGINX, AT_LEAST, 0.8, 1.0)
                yield self.ratio(f"{what}: CPU vs nginx", key, NGINX, AT_MOST, 2.0, 1.3, "CPU us")
                yield self.ratio(f"{what}: requests/s vs konnectivity", key, KONNECTIVITY, AT_LEAST, 1.2, 1.8)
        for http, version in VERSIONS.items():
            yield self.ratio(f"small GET, {version}, 1 worker: CPU vs the other build (budget: 165218a)",
                             f"small-h{http}-1", OTHER, AT_MOST, 0.6, 0.6, "CPU us")

    def lists(self):
        for http, version in VERSIONS.items():
            key, what = f"list-h{http}", f"16 MB list, {version}"
            yield self.ratio(f"{what}: MB/s vs nginx", key, NGINX, AT_LEAST, 1.1, 1.5)
            yield self.ratio(f"{what}: MB/s vs konnectivity", key, KONNECTIVITY, AT_LEAST, 2.5, 4.0)

    def fresh(self):
        for credential in ("certificate", "token"):
            key, what = f"fresh-{credential}", f"new connection, with a {credential}"
            yield self.ratio(f"{what}: requests/s vs konnectivity", key, KONNECTIVITY, AT_LEAST, 1.5, 1.5)
            yield self.ratio(f"{what}: requests/s vs direct", key, DIRECT, AT_LEAST, 0.6, 0.8)

    def kube(self):
        yield self.ratio("kube-apiserver, one ConfigMap, 16 workers: requests/s vs direct", "kube-get", DIRECT,
                         AT_LEAST, 0.85, 0.95)

    def readers(self):
        for readers in ("1 reader", "100 readers"):
            row = Row(f"p99 beside {readers} that stalled, vs beside none", None, AT_MOST, 1.2, 1.2, reason=NOT_SELECTED)
            if self.stalled:
                row.measured = self.stalled.ratio(readers, "0 readers", "p99 ms")
                row.reason = "failed" if row.measured is None else "with errors" if self.stalled.failures(readers) else ""
            yield row

    def rewriting(self):
        speed = times = bodies = growth = None
        if self.engine:
            short, long = self.engine["lists"]
            row = next(row for row in long["rows"] if row["name"] == "filter and map, chunks of 64 KiB")
            speed, times = row["megabytesPerSecond"] / 1000, row["timesSerdeJson"]
            bodies = min(row["timesSerdeJson"] for body in self.engine["bodies"] for row in body["rows"]
                         if row["name"] == "map")
            growth = long["in_one"]["count"] - short["in_one"]["count"]
        reason = "" if self.engine else NOT_SELECTED
        yield Row("engine, list of 5,000 pods", speed, AT_LEAST, 1.7, 3.0, "GB/s", reason=reason)
        yield Row("engine, list of 5,000 pods, vs serde_json", times, AT_LEAST, 20, 20, digits=1, reason=reason)
        yield Row("engine, further allocations for ten times as many pods", growth, AT_MOST, 0, 0, "", 0, reason)
        yield Row("engine, the slowest request body, vs serde_json", bodies, AT_LEAST, 3, 3, digits=1, reason=reason)

    def idle(self):
        for name, what in (("atoll-agent", "proxy-agent with two clusters"), ("atoll-proxy-server", "proxy-server")):
            found = [mb for process, mb in (self.memory or {}).items() if process.startswith(name)]
            reason = "" if found else NOT_SELECTED
            yield Row(f"idle memory, {what}", max(found, default=None), AT_MOST, 25, 25, "MB", 1, reason)

    def doubts(self):
        """The reason why the figures are not sufficient, or nothing."""
        measured = [*self.cases.values(), *([self.stalled] if self.stalled else [])]
        rounds = [len(figures.others) for figures in measured]
        others = [other for figures in measured for other in figures.others]
        notes = []
        if rounds and min(rounds) < ROUNDS_FOR_A_CLAIM:
            notes.append(f"{min(rounds)} rounds carry no claim; {ROUNDS_FOR_A_CLAIM} do")
        busy = sum(other > OTHER_WORK_FOR_A_CLAIM for other in others)
        if busy:
            notes.append(f"other work took more than {OTHER_WORK_FOR_A_CLAIM:.0%} of the CPUs in {busy} of {len(others)} rounds: "
                         "measure again on a quiet machine")
        return notes
