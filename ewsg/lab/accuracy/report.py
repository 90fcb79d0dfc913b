"""The table and the figure of `ewsg bench accuracy`."""

import math
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.table import Table

from .. import figures
from ..styles import is_known, style
from .methods import PLAN

SHOWN = (
    "full gradient",
    "SGHMC",
    "EWSG",
    "SGNHT",
    "SMS-UBU",
    "control variate",
    "paired",
    "paired, sequential",
    "control variate + paired",
    PLAN,
)
"""Methods in the figure, besides your own; if none of them ran, those that did. The table has all."""


class Cell(NamedTuple):
    """A method at one step size, over the seeds."""

    factor: float
    rows: list[dict[str, Any]]

    @property
    def ok(self) -> bool:
        """Whether every seed has numbers."""
        return all("error" in row for row in self.rows)

    def mean(self, name: str) -> float:
        """Mean over seeds of a number (the last one, of a curve); infinite where a chain failed."""
        if not self.ok:
            return math.inf
        values = [row[name] for row in self.rows]
        return float(np.mean([value[-1] if isinstance(value, list) else value for value in values]))

    def spread(self, name: str) -> float:
        """Half the range over seeds."""
        values = [row[name][-1] if isinstance(row[name], list) else row[name] for row in self.rows]
        return (max(values) - min(values)) / 2


def cells(results: dict[str, Any], problem: str) -> dict[str, list[Cell]]:
    """The cells of each method on a problem, by step size."""
    found: dict[str, dict[float, list[dict[str, Any]]]] = {}
    for row in results["rows"]:
        if row["problem"] == problem:
            found.setdefault(row["method"], {}).setdefault(row["factor"], []).append(row)
    return {method: [Cell(*item) for item in sorted(by.items())] for method, by in found.items()}


def best(candidates: list[Cell]) -> Cell:
    """The step size with the smallest error at the full budget."""
    return min(candidates, key=lambda cell: cell.mean("error"))


def table(results: dict[str, Any], console: Console) -> str:
    """Prints the table of all problems, then one per problem; returns them as Markdown."""
    found = {problem: cells(results, problem) for problem in results["problems"]}
    text = ["# Accuracy at equal datum gradients", ""]
    titles = {
        "error": "Error of one chain after the whole budget, each method at its best step (posterior sd)",
        "kl": "KL of the moments of the pooled chains, all methods at the common step",
    }
    for name, title in titles.items():
        text += show(title, *_overview(found, name), console)
    for problem, facts in results["problems"].items():
        title = (
            f"{facts['title']}: {facts['data_per_step']} data per step, friction {facts['friction']:g}, common step "
            f"{facts['step_size']:g}"
        )
        text += show(title, *_rows(found[problem]), console)
    console.print(f"\n{_legend(results)}", soft_wrap=True)
    return "\n".join([*text, _legend(results), ""])


def show(title: str, header: list[str], rows: list[list[str]], console: Console) -> list[str]:
    """Prints a table, and returns its lines in Markdown."""
    shown = Table(title=f"\n{title}", box=None, title_justify="left", pad_edge=False)
    for column in header:
        shown.add_column(column, justify="left" if column == "method" else "right", no_wrap=True)
    for row in rows:
        shown.add_row(*row)
    console.print(shown)
    lines = [header, ["---", *["---:"] * (len(header) - 1)], *rows]
    return [f"## {title}", "", *("| " + " | ".join(line) + " |" for line in lines), ""]


def _overview(found: dict[str, dict[str, list[Cell]]], name: str) -> tuple[list[str], list[list[str]]]:
    """One row per method, one column per problem: the error at the best step, or the KL at the common one."""
    methods = dict.fromkeys(method for by_method in found.values() for method in by_method)
    rows = []
    for method in methods:
        row = [method]
        for by_method in found.values():
            candidates = by_method.get(method, [])
            cell = (best(candidates) if name == "error" else _common(candidates)) if candidates else None
            row.append(_number(cell, name, "{:.3f}" if name == "error" else "{:.2g}") if cell else "-")
        rows.append(row)
    return ["method", *found], rows


def _legend(results: dict[str, Any]) -> str:
    return (
        "KL: moments of the pooled chains against the reference, at the common step (floor: exact draws of that "
        "effective size). sd: posterior sd over the reference's, median and worst coordinate. mean: largest error of "
        "a mean, in sd. error: of one chain's own means and sds after the whole budget, in sd, bias and variance "
        "together; at the common step, and at the step of the grid "
        f"({', '.join(f'{factor:g}' for factor in results['grid'])} times the common one) where it is smallest. ESS: "
        "smallest effective sample size per 10^6 datum gradients, at the common step: blind to bias. time: of a step, "
        f"over SGHMC's. {len(results['seeds'])} seeds; ± is half their range; - means that chains diverged. All "
        "methods but `plan` start at the posterior mean, whose search is charged to none. `plan` is given no setting, "
        "starts where the problem does, and pays for its search and its pilots, shared out among the chains. "
        "Directional derivatives are not counted as datum gradients: the paired rules also take one for each of their "
        "data, and `select` takes gradients of half of them, hence twice as many steps. CCAdL and the covariance of "
        "the batch are given twice the budget, as our composition evaluates their data twice."
    )


def _rows(methods: dict[str, list[Cell]]) -> tuple[list[str], list[list[str]]]:
    header = ["method", "KL", "floor", "sd", "worst", "mean", "KSD", "error", "best error", "at step", "ESS", "time"]
    seconds = _fastest(methods["SGHMC"]) if "SGHMC" in methods else math.nan
    rows = []
    for method, candidates in methods.items():
        common, top = _common(candidates), best(candidates)
        if not any(cell.ok for cell in candidates):
            rows.append([method, *["-"] * (len(header) - 1)])
            continue
        rows.append(
            [
                method,
                _number(common, "kl", spread=True),
                _number(common, "kl_floor"),
                _number(common, "sd_ratio_median", "{:.3f}"),
                _number(common, "sd_ratio_worst", "{:.3f}"),
                _number(common, "mean_max", "{:.3f}"),
                _number(common, "ksd"),
                _number(common, "error", "{:.3f}"),
                _number(top, "error", "{:.3f}", spread=True),
                "its own" if method == PLAN else f"{top.factor:g}",
                _number(common, "ess_per_million", "{:,.0f}"),
                f"{_fastest(candidates) / seconds:.2f}",
            ]
        )
    return header, rows


def _fastest(candidates: list[Cell]) -> float:
    """Microseconds per step of one chain, the minimum over all runs: others may have shared the machine."""
    return min(row["microseconds_per_step"] for cell in candidates for row in cell.rows if "error" in row)


def _common(candidates: list[Cell]) -> Cell:
    """The step size at which all methods are compared."""
    return min(candidates, key=lambda cell: abs(math.log(cell.factor)))


def _number(cell: Cell, name: str, form: str = "{:.2g}", spread: bool = False) -> str:
    if not cell.ok:
        return "-"
    text = form.format(cell.mean(name))
    return f"{text} ± {f'{cell.spread(name):.1g}'}" if spread and len(cell.rows) > 1 else text


def draw(results: dict[str, Any], path: Path) -> None:
    """Error against cost, one panel per problem and one line per method, each at its best step."""
    ran = dict.fromkeys(row["method"] for row in results["rows"])
    own = [method for method in ran if not is_known(method)]
    some = (*SHOWN, *own)
    some = some if any(method in ran for method in some) else tuple(ran)
    looks = {method: style(method, own.index(method) if method in own else 0) for method in some}
    names = list(results["problems"])
    columns = min(3, len(names))
    rows = math.ceil(len(names) / columns)
    with figures.drawing(path, columns=columns, rows=rows, height=3.0) as (figure, axes):
        panels = np.atleast_1d(axes).ravel()
        for panel, name in zip(panels, names, strict=False):
            methods = cells(results, name)
            facts = results["problems"][name]
            for method, (color, marker, line) in looks.items():
                top = best(methods[method]) if method in methods else None
                if top is None or not top.ok:
                    continue
                cost = np.mean([row["cost"] for row in top.rows], axis=0) / facts["num_data"]
                error = np.mean([row["error"] for row in top.rows], axis=0)
                panel.loglog(cost, error, color=color, marker=marker, linestyle=line, markersize=3.5, linewidth=1.2)
            panel.set(title=facts["title"], xlabel="datum gradients / n (data passes)")
            for axis in (panel.xaxis, panel.yaxis):
                figures.plain_numbers(axis)
        for panel in panels[::columns]:
            panel.set_ylabel("error of one chain (posterior sd)")
        for panel in panels[len(names) :]:
            panel.set_axis_off()
        for method, (color, marker, line) in looks.items():
            panels[0].plot([], [], color=color, marker=marker, linestyle=line, markersize=3.5, label=method)
        figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=5, fontsize=8.5)
