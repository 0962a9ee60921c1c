"""The results as text."""

import statistics

from .budgets import NOT_SELECTED
from .routes import DIFFERENCES, DIRECT, KONNECTIVITY, NGINX, OTHER

WIDTH = 14
QUANTILES = ("p50 ms", "p99 ms")


def show_title(title, figures):
    other = 100 * statistics.median(figures.others)
    compared = f"; ratios of {figures.metric}" if figures.metric in QUANTILES else ""
    print(f"\n{title}  [{len(figures.others)} rounds{compared}; other work took {other:.0f} % of the CPUs]")


def show_case(title, figures):
    """Each route with its ratios. The ratio to nginx comes first, because it varies less than that to konnectivity."""
    show_title(title, figures)
    compared = [name for name in (NGINX, KONNECTIVITY, DIRECT, OTHER) if name in figures.reports]
    # A quantile has a separate column, and its rate is that of the open loop.
    is_rate = figures.metric not in QUANTILES
    head = f"  {'':<{WIDTH}}" + "".join(
        f"{'x ' + short(name):>9}" + (f"{'quartiles':>12}" if name == NGINX else "") for name in compared)
    if is_rate:
        head += f"{figures.metric:>12}{'best':>10}"
    head += f"{'CPU us':>11}{'best':>10}" + "".join(f"{'x ' + short(name):>9}" for name in compared if name != DIRECT)
    print(head + f"{'p50 ms':>9}{'p99 ms':>9}{'errors':>8}" + ("" if is_rate else f"{'missed':>8}"))
    for name in figures.reports:
        line = f"  {name:<{WIDTH}}"
        for other in compared:
            line += number(figures.ratio(name, other), 9, 2)
            if other == NGINX:
                between = figures.quartiles(name, other) if name != NGINX else None
                line += f"{'{:.2f}-{:.2f}'.format(*between) if between else '':>12}"
        if is_rate:
            line += number(figures.median(name, figures.metric), 12, 0) + number(figures.best(name, figures.metric), 10, 0)
        line += number(figures.median(name, "CPU us"), 11, 1) + number(figures.best(name, "CPU us"), 10, 1)
        line += "".join(number(figures.ratio(name, other, "CPU us"), 9, 2) for other in compared if other != DIRECT)
        line += number(figures.median(name, "p50 ms"), 9, 2) + number(figures.median(name, "p99 ms"), 9, 2)
        line += f"{figures.count(name, 'errors'):>8}" + ("" if is_rate else f"{figures.count(name, 'missed'):>8}")
        print(line)
    for name in figures.reports:
        for failure in figures.failures(name)[:2]:
            print(f"  {name}: {failure}")
    print("", end="", flush=True)


def show_stalled(title, figures):
    show_title(title, next(iter(figures.values())))
    print(f"  {'':<{WIDTH + 20}}{'x none':>9}{'p50 ms':>9}{'p99 ms':>9}{'best':>9}{'errors':>8}{'missed':>8}")
    for build, found in figures.items():
        for readers in found.reports:
            line = f"  {build + ', ' + readers:<{WIDTH + 20}}"
            line += number(found.ratio(readers, next(iter(found.reports)), "p99 ms"), 9, 2)
            line += number(found.median(readers, "p50 ms"), 9, 2) + number(found.median(readers, "p99 ms"), 9, 2)
            line += number(found.best(readers, "p99 ms"), 9, 2)
            print(line + f"{found.count(readers, 'errors'):>8}{found.count(readers, 'missed'):>8}")
            for failure in found.failures(readers)[:2]:
                print(f"  {build}, {readers}: {failure}")
    print("", end="", flush=True)


def show_watches(title, found):
    print(f"\n{title}")
    for name, report in found.items():
        times = ", ".join(f"{key} {report['delivery'][key]:.1f}" for key in ("p50", "p99", "max"))
        print(f"  {name:<{WIDTH}} delivery ms: {times}; {report['delivered']} delivered, {report['lost']} lost", flush=True)


def show_memory(title, found):
    print(f"\n{title}, MB: " + ", ".join(f"{name} {mb:.1f}" for name, mb in found.items()), flush=True)


def show_differences(cases):
    """The differences between the routes and the parameters of TLS, which are necessary to interpret the ratios."""
    print("\nWhat the routes do")
    for name, (connect, certificate, token, between) in DIFFERENCES.items():
        if not any(name in figures.reports for figures in cases.values()):
            continue
        print(f"  {name}\n    CONNECT: {connect}; a client certificate is verified by: {certificate}; a token is: {token}")
        print(f"    {between}")
        for at_kube in (False, True):
            tls = {figures.tls(name) for key, figures in cases.items() if key.startswith("kube") == at_kube} - {""}
            if tls:
                host = "of kube-apiserver" if at_kube else "of bench upstream"
                print(f"    TLS of the client in the cases {host}: {', '.join(sorted(tls))}")
    print("  All: the client verifies the server's certificate (ECDSA P-256, directly below its CA) and resumes no session.",
          flush=True)


def show_budgets(rows, notes):
    columns = ("budget", "measured", "first figure", "target", "met?")
    shown = [row for row in rows if row.reason != NOT_SELECTED]
    texts = [columns] + [row.texts() for row in shown]
    widths = [max(len(text[column]) for text in texts) for column in range(len(columns))]
    print()
    for line, text in enumerate(texts):
        print(" | ".join(f"{cell:<{width}}" for cell, width in zip(text, widths)).rstrip())
        if line == 0:
            print("-|-".join("-" * width for width in widths))
    if len(shown) < len(rows):
        print(f"{len(rows) - len(shown)} budgets are not selected")
    for note in notes:
        print(note)
    print("", end="", flush=True)


def short(name):
    return {KONNECTIVITY: "konn.", OTHER: "other"}.get(name, name)


def number(value, width, digits):
    return f"{'' if value is None else f'{value:.{digits}f}':>{width}}"
