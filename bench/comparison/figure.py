"""A figure of several panels in plain SVG: a curve for each series, over the number of virtual clusters."""

import dataclasses
import html
import math

WIDTH, HEIGHT = 400, 250  # of a panel
LEFT, RIGHT, TOP, BOTTOM = 58, 16, 52, 40  # margins of the axes in a panel
COLUMNS = 2
COLORS = ["#1f6fb4", "#d95f02", "#1b9e77", "#7b4fa3", "#b8860b", "#c2185b"]
# The first configuration of the agent has solid lines.
DASHES = ["", "6 3", "2 3", "8 3 2 3"]


@dataclasses.dataclass
class Line:
    label: str
    color: str
    dash: str
    points: list  # pairs of the number of clusters and the value


@dataclasses.dataclass
class Panel:
    title: str
    lines: list
    logarithmic: bool = False


def memory(phase, process):
    return lambda run: run["memory"][phase][process]["rssKb"] / 1024


def cpu(process):
    return lambda run: max(run["events"]["cpuMicros"][process], 0) / 1000


# The panels with a logarithmic axis of values.
LOGARITHMIC = {"Delivery of an event, ms"}
# Of each panel: the title, and the label and the value of each series.
SERIES = [
    ("Until all clusters respond, s", [
        ("first start", lambda run: run["start"]["answeringSeconds"]),
        ("restart", lambda run: run["restart"]["answeringSeconds"]),
    ]),
    ("Watches at the host", [
        ("without clients", lambda run: run["watches"]["ready"] - run["watches"]["before"]),
        ("with informers", lambda run: run["watches"]["informed"] - run["watches"]["before"]),
        ("informers", lambda run: run["informers"]["count"]),
    ]),
    ("Memory (RSS), MB", [
        ("agent, no clients", memory("ready", "proxy-agent")),
        ("server, no clients", memory("ready", "proxy-server")),
        ("agent, informers", memory("informed", "proxy-agent")),
        ("server, informers", memory("informed", "proxy-server")),
    ]),
    ("CPU time of an event, ms", [
        ("agent", cpu("proxy-agent")),
        ("server", cpu("proxy-server")),
        ("kube-apiserver", cpu("kube-apiserver")),
    ]),
    ("Delivery of an event, ms", [
        ("p50", lambda run: run["events"]["delivery"]["p50"]),
        ("p99", lambda run: run["events"]["delivery"]["p99"]),
        ("p50 at the host", lambda run: run["events"]["direct"]["p50"]),
        ("p99 at the host", lambda run: run["events"]["direct"]["p99"]),
    ]),
    ("Creation of a pod at the host (p50), ms", [
        ("without Atoll", lambda run: run["pods"]["without"]["p50"]),
        ("outside of clusters", lambda run: run["pods"]["outside"]["p50"]),
        ("in a cluster", lambda run: run["pods"]["inside"]["p50"]),
    ]),
]


def panels(report):
    """The panels of a report. Runs that failed have no points."""
    cases = [case for case in report["cases"] if case["measured"]]
    configs = list(dict.fromkeys(case["config"] for case in cases))
    drawn = []
    for title, series in SERIES:
        lines = []
        for number, config in enumerate(configs):
            for color, (label, value) in zip(COLORS, series):
                points = sorted((case["clusters"], value(case["measured"])) for case in cases if case["config"] == config)
                label = label if len(configs) == 1 else f"{label}, {config}"
                lines.append(Line(label, color, DASHES[number % len(DASHES)], points))
        drawn.append(Panel(title, lines, title in LOGARITHMIC))
    return drawn


def steps(highest):
    """Round values for an axis from 0 to at least `highest`."""
    if highest <= 0:
        return [0, 1]
    size = 10 ** math.floor(math.log10(highest))
    step = next(step for step in (size / 5, size / 2, size, size * 2) if highest / step <= 5)
    return [step * number for number in range(math.ceil(highest / step - 1e-9) + 1)]


def decades(lowest, highest):
    """Powers of ten from at most `lowest` to at least `highest`. Values that are not positive count as 1."""
    low, high = (math.log10(value) if value > 0 else 0 for value in (lowest, highest))
    first = math.floor(low)
    return [10.0**power for power in range(first, max(math.ceil(high), first + 1) + 1)]


class Figure:
    def __init__(self, drawn):
        self.drawn = drawn

    def svg(self):
        rows = math.ceil(len(self.drawn) / COLUMNS)
        legend = max((len(panel.lines) for panel in self.drawn), default=0)
        height = HEIGHT + 14 * max(math.ceil(legend / 2) - 2, 0)
        width, total = WIDTH * COLUMNS, height * rows
        parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {total}" width="{width}" height="{total}" '
                 'font-family="sans-serif" font-size="11" fill="#222222">',
                 f'<rect width="{width}" height="{total}" fill="#ffffff"/>']
        for number, panel in enumerate(self.drawn):
            x, y = number % COLUMNS * WIDTH, number // COLUMNS * height
            parts += [f'<g transform="translate({x} {y})">', *self.panel(panel, height), "</g>"]
        return "\n".join([*parts, "</svg>", ""])

    def panel(self, panel, height):
        counts = sorted({count for line in panel.lines for count, _ in line.points})
        values = [value for line in panel.lines for _, value in line.points] or [0]
        ticks = decades(min(values), max(values)) if panel.logarithmic else steps(max(values))
        top = TOP + 14 * max(math.ceil(len(panel.lines) / 2) - 2, 0)
        bottom = height - BOTTOM

        def across(count):
            low, high = math.log10(counts[0]), math.log10(counts[-1])
            share = (math.log10(count) - low) / (high - low) if high > low else 0.5
            return LEFT + share * (WIDTH - LEFT - RIGHT)

        def up(value):
            share = value / ticks[-1]
            if panel.logarithmic:
                share = math.log10(max(value, ticks[0]) / ticks[0]) / math.log10(ticks[-1] / ticks[0])
            return bottom - share * (bottom - top)

        yield f'<text x="{LEFT}" y="18" font-size="13" font-weight="bold">{html.escape(panel.title)}</text>'
        for number, line in enumerate(panel.lines):
            x, y = LEFT + number % 2 * (WIDTH - LEFT) // 2, 32 + number // 2 * 14
            yield f'<path d="M{x} {y - 4}h18" stroke="{line.color}" stroke-width="2" stroke-dasharray="{line.dash}"/>'
            yield f'<text x="{x + 22}" y="{y}">{html.escape(line.label)}</text>'
        for tick in ticks:
            y = up(tick)
            yield f'<path d="M{LEFT} {y:.1f}H{WIDTH - RIGHT}" stroke="#dddddd"/>'
            yield f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{tick:,g}</text>'
        for count in counts:
            yield f'<text x="{across(count):.1f}" y="{bottom + 16}" text-anchor="middle">{count:,}</text>'
        yield f'<text x="{(LEFT + WIDTH - RIGHT) / 2}" y="{bottom + 32}" text-anchor="middle">virtual clusters</text>'
        for line in panel.lines:
            points = [(across(count), up(value)) for count, value in line.points]
            path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
            yield (f'<polyline points="{path}" fill="none" stroke="{line.color}" stroke-width="2" '
                   f'stroke-dasharray="{line.dash}"/>')
            for x, y in points:
                yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2.5" fill="{line.color}"/>'
