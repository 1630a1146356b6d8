#!/usr/bin/python3
"""Draws the scaling results that `ps_bench --scaling --csv=FILE` wrote.

usage: bench/plot_scaling.py scaling.csv scaling.svg     (or .png)

One panel per direction: goodput by workers, a line per number of servers, its spread as a band, the raw socket
of the same run dashed. Needs Matplotlib (Debian: python3-matplotlib).
"""

import argparse
import csv
from typing import Dict, List, NamedTuple, Sequence


class Point(NamedTuple):
    servers: int
    workers: int
    direction: str
    goodput: float
    least: float
    most: float
    raw_socket: float


def read_points(path: str) -> List[Point]:
    with open(path, encoding="utf-8", newline="") as file:
        return [
            Point(
                int(row["servers"]),
                int(row["workers"]),
                row["direction"],
                float(row["gbytes_per_s"]),
                float(row["min"]),
                float(row["max"]),
                float(row["raw_socket_gbytes_per_s"]),
            )
            for row in csv.DictReader(file)
        ]


def lines_of(points: Sequence[Point], direction: str) -> Dict[int, List[Point]]:
    """The points of a direction by number of servers, in the order of workers."""
    lines: Dict[int, List[Point]] = {}
    for point in sorted(points, key=lambda p: (p.servers, p.workers)):
        if point.direction == direction:
            lines.setdefault(point.servers, []).append(point)
    return lines


def draw_panel(axes, points: Sequence[Point], direction: str) -> None:
    for servers, line in lines_of(points, direction).items():
        workers = [p.workers for p in line]
        label = "1 server" if servers == 1 else f"{servers} servers"
        (drawn,) = axes.plot(workers, [p.goodput for p in line], marker="o", label=label)
        axes.fill_between(
            workers, [p.least for p in line], [p.most for p in line], color=drawn.get_color(), alpha=0.15, linewidth=0
        )
    raw = lines_of(points, direction).get(1, [])
    axes.plot([p.workers for p in raw], [p.raw_socket for p in raw], "k--", linewidth=1, label="raw socket")
    axes.set_title(direction)
    axes.set_xscale("log", base=2)
    axes.set_xticks(sorted({p.workers for p in points}))
    axes.xaxis.set_major_formatter("{x:.0f}")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("workers")
    axes.set_ylabel("goodput, GB/s")
    axes.grid(alpha=0.3)
    axes.legend()


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws what ps_bench --scaling --csv=FILE wrote.")
    parser.add_argument("csv", help="what ps_bench wrote")
    parser.add_argument("image", help="file to write: .svg or .png")
    flags = parser.parse_args()
    points = read_points(flags.csv)
    if not points:
        parser.error(f"{flags.csv}: no results")
    try:
        import matplotlib
    except ImportError:
        parser.error("Matplotlib is missing: apt-get install python3-matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    directions = [d for d in ("push", "pull") if lines_of(points, d)]
    figure, panels = pyplot.subplots(1, len(directions), figsize=(5.5 * len(directions), 4), squeeze=False)
    for axes, direction in zip(panels[0], directions):
        draw_panel(axes, points, direction)
    figure.tight_layout()
    figure.savefig(flags.image)


if __name__ == "__main__":
    main()
