"""The figures of one case, from rounds in which the routes are measured in turns."""

import statistics

# For each metric, how to read it from a report of `bench load`, and which of two values is better.
METRICS = {
    "requests/s": (lambda report: report["requestsPerSecond"], max),
    "MB/s": (lambda report: report["megabytesPerSecond"], max),
    "CPU us": (lambda report: cpu(report), min),
    "p50 ms": (lambda report: report["latency"]["p50"], min),
    "p99 ms": (lambda report: report["latency"]["p99"], min),
}
GENERATOR = "bench"  # the name of the load generator in its reports


def cpu(report):
    """The CPU time of one request, of all processes of the route with their descendants, or None without processes."""
    spent = [process["cpuMicros"] for process in report["processes"] if process["name"] != GENERATOR]
    return sum(spent) if spent else None


class Figures:
    """The reports of each route, by name. The reports of one round are close in time."""

    def __init__(self, metric="requests/s"):
        self.metric = metric
        self.reports = {}
        self.others = []

    def measure(self, names, rounds, load, cpu_time):
        """The order of the routes alternates, so that a steady drift of the machine has the same effect on all. `load(name)` returns a
        report, or the text of a failure. The result has the other work of the machine in each round."""
        self.reports = {name: [] for name in names}
        for number in range(rounds):
            time = cpu_time()
            for name in names if number % 2 == 0 else reversed(names):
                self.reports[name].append(load(name))
            self.others.append(round(time.others(), 3))
        return self

    def values(self, name, metric):
        read, _ = METRICS[metric]
        return [None if isinstance(report, str) else read(report) for report in self.reports.get(name, [])]

    def median(self, name, metric):
        return median(self.values(name, metric))

    def best(self, name, metric):
        found = [value for value in self.values(name, metric) if value is not None]
        return METRICS[metric][1](found) if found else None

    def ratios(self, name, other, metric):
        """The ratio of two routes for each round in which both were measured."""
        pairs = zip(self.values(name, metric), self.values(other, metric))
        return [one / two for one, two in pairs if one is not None and two]

    def ratio(self, name, other, metric=None):
        """The median of the ratios of all rounds. Other work that slows down a whole round has no effect on a ratio."""
        return median(self.ratios(name, other, metric or self.metric))

    def quartiles(self, name, other, metric=None):
        """The quartiles of the ratios."""
        found = self.ratios(name, other, metric or self.metric)
        if len(found) < 2:
            return None
        first, _, third = statistics.quantiles(found, n=4, method="inclusive")
        return first, third

    def count(self, name, key):
        return sum(report[key] for report in self.reports[name] if not isinstance(report, str))

    def failures(self, name):
        """The failures as text: failed rounds and failed requests."""
        words = []
        for report in self.reports.get(name, []):
            if isinstance(report, str):
                words.append(report)
            elif report["errors"]:
                words.append("; ".join(f"{kind}: {example}" for kind, example in report["failures"].items()))
        return words

    def tls(self, name):
        """The parameters of the TLS connection of the client."""
        found = {report.get("tls") for report in self.reports.get(name, []) if not isinstance(report, str)}
        return " or ".join(sorted(text for text in found if text))

    def json(self):
        """All figures: for each route its reports, and the medians and best values of all metrics."""
        def summary(name):
            return {metric: {"median": self.median(name, metric), "best": self.best(name, metric)} for metric in METRICS}
        return {"metric": self.metric, "otherWork": self.others,
                "summary": {name: summary(name) for name in self.reports}, "rounds": self.reports}


def median(values):
    found = [value for value in values if value is not None]
    return statistics.median(found) if found else None
