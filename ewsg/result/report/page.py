"""The page: numbers, words and figures of a run put into the template beside this file."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from ..._core import atomic
from ..._core.optional import require
from ...errors import InputError
from ..columns import MEANINGS
from ..estimates import estimates
from ..html import parameter_table
from ..plots import drawings
from ..plots.look import ON_BLACK
from ..plots.panels import MOST_CHAINS
from ..plots.shown import reason_for_none
from ..predictive import PredictiveVerdict
from ..summary import num_kept, summarize
from . import asked, diagnostics
from .judgement import judgement
from .svg import inline, variable

if TYPE_CHECKING:
    from ..run import Run

_ENDINGS = (".html", ".htm")
_KINDS = ("marginal", "trace", "time", "pair")


def write_page(run: "Run", path: str | os.PathLike) -> None:
    """Write the report of a run to a file, atomically; raises InputError before any work if that cannot be done."""
    final = atomic.destination(path)
    if final.suffix.lower() not in _ENDINGS:
        raise InputError(f"a report is a page of HTML: give it a name that ends in .html, not {final.name!r}")
    text = page(run)
    atomic.write(path, lambda file: file.write(text.encode()))


def page(run: "Run") -> str:
    """The report of a run as one page of HTML that loads nothing."""
    jinja2 = require("jinja2", extra="report")
    require("matplotlib", extra="report")
    has_draws = num_kept(run) != 0 or not run.ok.any()
    found = estimates(run) if has_draws else None
    summary = summarize(run, found)
    made = drawings(run, found) if found is not None else []
    figures: dict[str, list[str]] = {kind: [] for kind in _KINDS}
    for number, one in enumerate(made):
        figures[one.kind].append(inline(one.svg(), f"figure{number}", one.says))
    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(_file),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        run=run,
        title=repr(run).removeprefix("Run(").removesuffix(")"),
        summary=summary,
        judgement=judgement(run, summary),
        warnings=[sentence for sentence in summary.warnings if sentence != summary.verdict],
        of_network=isinstance(run.verdict, PredictiveVerdict),
        asked=asked.asked(run),
        plan=asked.plan(run),
        costs=diagnostics.costs(run),
        convergence=diagnostics.convergence(run, found) if found is not None else [],
        subsampling=diagnostics.subsampling(run, summary),
        judged=[] if run.verdict is None else diagnostics.judged(run.verdict),
        table=parameter_table(summary.parameters) if summary.parameters else "",
        columns={name: MEANINGS[name] for name in summary.parameters},
        figures=figures,
        without=reason_for_none(run) or "",
        most_chains=MOST_CHAINS,
        call=asked.call(run),
        versions=run.settings.get("versions") or {},
        has_gradient_noise=run.settings.get("integrator") is not None,
        settings=asked.shortened(run.settings),
        style=_file("style.css"),
        colours=[(variable(light), light, dark) for light, dark in ON_BLACK.items()],
    )


def _file(name: str) -> str:
    """A file that is shipped beside this one."""
    return Path(__file__).with_name(name).read_text(encoding="utf-8")
