"""The tables and the figure of wall_clock.py, from its results.json.

python benchmarks/wall_clock_figure.py RESULTS [FIGURE]
"""

import json
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from ewsg.lab.styles import style

PROBLEMS = {
    "a9a": "a9a\nn = 32,561, d = 124",
    "covertype": "Covertype\nn = 581,012, d = 55",
    "simulated": "simulated\nn = 1,000,000, d = 20",
}
SIDES = {
    "laplace": "Laplace approximation",
    "ewsg": "ewsg.sample(target, accuracy=0.05)",
    "hmcecs": "NumPyro HMCECS",
    "nutpie": "nutpie, whitened",
    "numpyro dense": "NumPyro NUTS, dense metric",
    "blackjax dense": "BlackJAX NUTS, dense metric",
    "numpyro": "NumPyro NUTS, diagonal metric",
    "blackjax": "BlackJAX NUTS, diagonal metric",
}
_OURS, _GREY = style("plan").color, style("SGLD").color
_WARMUP = dict.fromkeys(SIDES, 1000) | {"nutpie": 400}
"""Draws of warm-up: Stan's and nutpie's defaults."""
_EXACT = tuple(SIDES)[2:]


def seconds(side: str, row: dict) -> tuple[float, float]:
    """Without and with warm-up."""
    more = _WARMUP[side] * row["seconds_per_draw"] if side in _EXACT else 0.0
    return row["seconds"], row["seconds"] + more


def table(rows: dict[str, dict]) -> str:
    """One row per side; seconds, with warm-up in brackets, and how many times those of the planned run."""
    lines = [
        "| | " + " | ".join(label.replace("\n", ", ") for label in PROBLEMS.values()) + " |",
        "| --- |" + " ---: |" * len(PROBLEMS),
    ]
    for side, label in SIDES.items():
        cells = []
        for name in PROBLEMS:
            row = rows.get(f"{name}, {side}")
            if row is None:
                cells.append("-")
                continue
            bare, whole = seconds(side, row)
            if side in _EXACT:
                ours = rows[f"{name}, ewsg"]["seconds"]
                cells.append(f"{bare:,.0f} ({whole:,.0f}): {bare / ours:.1f} × ({whole / ours:.1f} ×)")
            else:
                cells.append(f"{bare:,.0f}" + (f" (warm: {row['warm']['seconds']:,.0f})" if "warm" in row else ""))
        lines.append(f"| {label} | " + " | ".join(cells) + " |")
    return "\n".join([*lines, ""])


def growth_table(rows: dict[str, dict]) -> str:
    """One row per number of data."""
    lines = [
        "| n | datum gradients per effective draw | passes | of these, plan | mode search | CPU seconds | verdict |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for name, row in rows.items():
        if name.startswith("growth, "):
            mode = next(word for word in row["mode"].split() if word.replace(".", "").isdigit())
            lines.append(
                f"| {int(name.split()[1]):,} | {row['per_effective_draw']:,.0f} | {row['passes']:.3g} "
                f"| {row['plan_passes']:.3g} | {mode} | {row['seconds']:.0f} | {row['verdict']} |"
            )
    return "\n".join([*lines, ""])


def figure(rows: dict[str, dict], path: Path) -> None:
    """Bars of seconds, one panel per problem; the warm-up that is granted in a lighter shade."""
    panels = [name for name in PROBLEMS if f"{name}, ewsg" in rows]
    figure, axes = plt.subplots(1, len(panels), figsize=(3.6 + 2.6 * len(panels), 3.4), sharey=True, squeeze=False)
    order = [side for side in reversed(SIDES) if any(f"{name}, {side}" in rows for name in panels)]
    for axis, name in zip(axes[0], panels, strict=True):
        found = {side: rows[f"{name}, {side}"] for side in order if f"{name}, {side}" in rows}
        for number, side in enumerate(order):
            if side not in found:
                axis.text(1.3, number, "not measured", va="center", fontsize=7, color=_GREY)
                continue
            bare, whole = seconds(side, found[side])
            if side == "laplace":
                axis.barh(number, bare, color="white", edgecolor=_GREY, hatch="////", height=0.7)
            else:
                color = _OURS if side == "ewsg" else _GREY
                axis.barh(number, whole, color=color, alpha=0.35, height=0.7)
                axis.barh(number, bare, color=color, height=0.7)
            axis.text(whole * 1.15, number, f"{bare:,.0f}", va="center", fontsize=7)
        axis.set_xscale("log")
        axis.set_ylim(-0.6, len(order) - 0.4)
        axis.set_xlim(1, 6 * max(seconds(side, row)[1] for side, row in found.items()))
        axis.set_title(PROBLEMS[name], fontsize=9)
        axis.set_xlabel("CPU seconds, one core", fontsize=8)
        axis.tick_params(labelsize=8)
        for edge in ("top", "right"):
            axis.spines[edge].set_visible(False)
    axes[0, 0].set_yticks(range(len(order)), [SIDES[side] for side in order])
    figure.tight_layout()
    figure.savefig(path, dpi=150)


def main() -> None:
    """Prints both tables; draws the figure if a file is named."""
    rows = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))["rows"]
    print(table(rows))
    print(growth_table(rows))
    if len(sys.argv) > 2:
        figure(rows, Path(sys.argv[2]))


if __name__ == "__main__":
    main()
