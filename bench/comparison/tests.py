"""Tests of the computations. Run: python3 -m unittest comparison.tests, in the directory bench."""

import unittest
import xml.dom.minidom

from .budgets import AT_LEAST, AT_MOST, Budgets, Row
from .cases import KUBE, SYNTHETIC
from .figure import Figure, decades, panels, steps
from .rounds import Figures
from .routes import ATOLL, DIRECT, KONNECTIVITY, NGINX, OTHER


def report(rate, cpu=None, errors=0):
    processes = [{"name": "bench", "cpuMicros": 1000.0}]
    processes += [{"name": name, "cpuMicros": cpu / 2} for name in ("one", "two")] if cpu else []
    return {"requestsPerSecond": rate, "megabytesPerSecond": rate / 10, "latency": {"p50": 1.0, "p99": 2.0}, "errors": errors,
            "missed": 0, "failures": {"Broken": "1 x reset"} if errors else {}, "processes": processes, "tls": "TLSv1_3"}


class Clock:
    def others(self):
        return 0.01


def measured(reports, rounds=4):
    """Figures of routes whose reports repeat."""
    left = {name: [one for _ in range(rounds) for one in reports] for name, reports in reports.items()}
    return Figures().measure(list(reports), rounds, lambda name: left[name].pop(0), Clock)


class FiguresTest(unittest.TestCase):
    def test_the_order_alternates(self):
        order = []
        Figures().measure(["a", "b"], 3, lambda name: order.append(name) or report(1), Clock)
        self.assertEqual("".join(order), "abbaab")

    def test_a_slow_round_is_not_in_the_ratio(self):
        figures = measured({ATOLL: [report(50), report(5), report(40)], NGINX: [report(100), report(10), report(80)]}, 1)
        self.assertEqual(figures.ratio(ATOLL, NGINX), 0.5)
        figures = measured({ATOLL: [report(50), report(5)], NGINX: [report(100), report(10)]}, 2)
        self.assertEqual(figures.ratio(ATOLL, NGINX), 0.5)
        self.assertEqual(figures.quartiles(ATOLL, NGINX), (0.5, 0.5))

    def test_cpu_is_that_of_all_processes_but_the_generator(self):
        figures = measured({ATOLL: [report(1, 90), report(1, 70)], DIRECT: [report(1)]}, 2)
        self.assertEqual((figures.median(ATOLL, "CPU us"), figures.best(ATOLL, "CPU us")), (80, 70))
        self.assertIsNone(figures.median(DIRECT, "CPU us"))
        self.assertIsNone(figures.ratio(ATOLL, DIRECT, "CPU us"))

    def test_a_failed_round_is_told_and_does_not_count(self):
        figures = measured({ATOLL: [report(50), "no answer"], NGINX: [report(100)]}, 2)
        self.assertEqual(figures.ratio(ATOLL, NGINX), 0.5)
        self.assertEqual(figures.failures(ATOLL), ["no answer"])
        self.assertEqual(figures.failures(NGINX), [])


class BudgetsTest(unittest.TestCase):
    def test_a_budget_is_met_up_to_its_bound(self):
        met = [Row("", value, AT_LEAST, 0.8, 1.0).met() for value in (1.0, 0.9, 0.8, 0.79)]
        self.assertEqual(met, ["target", "first figure", "first figure", "no"])
        met = [Row("", value, AT_MOST, 2.0, 1.3).met() for value in (1.3, 2.0, 2.1)]
        self.assertEqual(met, ["target", "first figure", "no"])
        self.assertEqual(Row("", None, AT_MOST, 2.0, 1.3, reason="skipped").met(), "- (skipped)")
        self.assertEqual(Row("", 5.0, AT_LEAST, 0.8, 1.0, reason="with errors").met(), "no (with errors)")

    def test_every_row_finds_its_case(self):
        reports = {ATOLL: [report(100, 50)], NGINX: [report(100, 50)], KONNECTIVITY: [report(100, 50)], DIRECT: [report(100)],
                   OTHER: [report(100, 100)]}
        figures = {case.key: measured(reports) for case in SYNTHETIC + KUBE}
        stalled = measured({f"{number}": [report(1)] for number in ("0 readers", "1 reader", "100 readers")})
        rows = Budgets(figures, {}, stalled, {"atoll-proxy-server": 20.0, "atoll-agent-dev": 26.0}).rows()
        missing = {row.reason for row in rows if row.measured is None}
        self.assertEqual(missing, {"not selected"})
        self.assertEqual({row.what.split(",")[0] for row in rows if row.measured is None}, {"engine"})
        one_worker = [row for row in rows if "1 worker" in row.what]
        self.assertEqual([row.measured for row in one_worker], [0.5, 0.5])
        self.assertEqual(rows[-2].met(), "no")

    def test_what_is_not_measured_says_why(self):
        figures = {"small-h1-1": measured({ATOLL: [report(1, 50)], DIRECT: [report(1)]})}
        rows = Budgets(figures, {"kube": "skipped"}).rows()
        why = {row.what: row.met() for row in rows}
        self.assertEqual(why["kube-apiserver, one ConfigMap, 16 workers: requests/s vs direct"], "- (skipped)")
        self.assertEqual(why["small GET, HTTP/1.1, 1 worker: CPU vs the other build (budget: 165218a)"], "- (needs --against)")
        self.assertTrue(all(row.measured is None for row in rows))
        self.assertIn("4 rounds", Budgets(figures, {}).doubts()[0])


def run(clusters, config="default"):
    """A run whose values are all its number of clusters."""
    summary = {"p50": clusters, "p99": clusters}
    memory = {name: {"rssKb": clusters * 1024} for name in ("proxy-agent", "proxy-server")}
    return {"clusters": clusters, "config": config, "measured": {
        "start": {"answeringSeconds": clusters}, "restart": {"answeringSeconds": clusters},
        "watches": {"before": 0, "ready": clusters, "informed": clusters}, "informers": {"count": clusters},
        "memory": {"ready": memory, "informed": memory},
        "events": {"cpuMicros": {name: clusters * 1000 for name in ("proxy-agent", "proxy-server", "kube-apiserver")},
                   "delivery": summary, "direct": summary},
        "pods": {"without": summary, "outside": summary, "inside": summary},
    }}


class FigureTest(unittest.TestCase):
    def test_an_axis_has_few_round_values_up_to_the_highest(self):
        self.assertEqual(steps(0), [0, 1])
        self.assertEqual(steps(5), [0, 1, 2, 3, 4, 5])
        self.assertEqual(steps(37), [0, 10, 20, 30, 40])
        for highest in (0.003, 0.9, 1, 1.01, 2.4, 99, 100, 101, 4040):
            values = steps(highest)
            self.assertTrue(values[-2] < highest <= values[-1] + 1e-9 and len(values) <= 6, (highest, values))

    def test_a_logarithmic_axis_has_powers_of_ten(self):
        self.assertEqual(decades(4.3, 15_851), [1, 10, 100, 1_000, 10_000, 100_000])
        self.assertEqual(decades(1, 1), [1, 10])
        self.assertEqual(decades(0, 0.5), [1, 10])

    def test_each_configuration_has_its_lines_in_the_order_of_clusters(self):
        failed = {"clusters": 1000, "config": "hub", "measured": None}
        drawn = panels({"cases": [run(10), run(10, "hub"), run(1), run(1, "hub"), failed]})
        for panel in drawn:
            self.assertEqual({line.label.rsplit(", ")[-1] for line in panel.lines}, {"default", "hub"})
            self.assertTrue(all(line.points == [(1, 1), (10, 10)] for line in panel.lines), panel)

    def test_the_figure_is_valid_xml(self):
        for cases in ([run(1)], [run(1), run(100)], [run(1, "a<b"), run(10, "a<b")]):
            xml.dom.minidom.parseString(Figure(panels({"cases": cases})).svg())
