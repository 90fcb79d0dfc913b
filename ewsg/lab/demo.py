"""`ewsg demo`: a Bayesian logistic regression, six samplers at equal cost, and how far each is from the truth.

The data are the breast-cancer measurements that ship inside scikit-learn, so that nothing is downloaded.
"""

import dataclasses
import time
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from rich.console import Console
from rich.table import Table

from .. import diagnostics, models, recipes
from .._core.optional import require
from ..reference import Reference, nuts
from ..result.run import Run
from ..sampling import sample
from ..target.target import Target
from . import figures
from .folder import RESULTS, Folder
from .styles import style

STEP_SIZE, FRICTION = 0.02, 10.0


class Outcome(NamedTuple):
    """One row of the demo's table."""

    name: str
    run: Run
    errors: diagnostics.MomentErrors


def problem() -> Target:
    """P(benign) from 30 standardised measurements and an intercept, coefficients N(0, 0.3²) a priori."""
    load_breast_cancer = require("sklearn.datasets", extra="lab").load_breast_cancer
    features, labels = (np.asarray(array) for array in load_breast_cancer(return_X_y=True))
    features = (features - features.mean(0)) / features.std(0)
    return models.logistic(models.with_intercept(features.astype(np.float32)), labels, prior_scale=0.3)


def methods() -> dict[str, recipes.Method]:
    """The samplers that are compared, with their data per step; step size and friction are the same."""
    return {
        "full gradient": recipes.full_gradient(STEP_SIZE, FRICTION),
        "SGHMC, 10 data": recipes.sghmc(10, STEP_SIZE, FRICTION),
        "SGHMC, 20 data": recipes.sghmc(20, STEP_SIZE, FRICTION),
        "EWSG, 2 x 10 data": recipes.ewsg(10, STEP_SIZE, FRICTION),
        "paired, 2 x 10 data": recipes.paired(10, STEP_SIZE, FRICTION),
        "paired, sequential": recipes.paired(10, STEP_SIZE, FRICTION, rule="sequential"),
    }


def main(out: str | Path = "ewsg-demo", seed: int = 0, quick: bool = False) -> dict[str, Any]:
    """Runs the demo and writes its table, figure and numbers to `out`.

    Args:
        out: folder for the files, created if it does not exist; InputError if it holds something else.
        seed: of every chain.
        quick: a tenth of the budget, to see that everything works.
    """
    folder = Folder(out, "demo")
    console = Console()
    began = time.perf_counter()
    target = problem()
    dimension = target.data.arrays.shape[1]
    console.print(f"Breast-cancer data: {target.num_data} patients, {dimension} coefficients. Reference: NUTS ...")
    draws = 200 if quick else 1000
    reference = nuts(target, jnp.zeros(dimension), num_warmup=300, num_draws=draws, seed=seed)
    console.print(f"  {reference.seconds:.0f} s, smallest effective sample size {reference.ess:,.0f}")
    passes = 30 if quick else 300
    outcomes = []
    for name, method in methods().items():
        run = sample(target, method, init=jnp.zeros(dimension), num_chains=32, data_passes=passes, seed=seed)
        outcomes.append(Outcome(name, run, diagnostics.moment_errors(run, reference.mean, reference.sd)))
        console.print(f"  {name}: {run.cost.seconds:.1f} s and {run.cost.compile_seconds:.1f} s to compile")
    results = _results(target, reference, outcomes, passes, seed, quick)
    console.print(_table(outcomes, passes))
    _explain(console, reference, target)
    results["seconds"] = time.perf_counter() - began
    folder.finish(results)
    _figure(reference, outcomes, folder.path / "figure")
    console.print(f"\nWrote {folder.path / 'figure.png'}, figure.svg and {RESULTS} in {results['seconds']:.0f} s.")
    return results


def _results(
    target: Target, reference: Reference, outcomes: list[Outcome], passes: int, seed: int, quick: bool
) -> dict[str, Any]:
    return {
        "data": f"breast cancer (scikit-learn), n = {target.num_data}",
        "seed": seed,
        "quick": quick,
        "data_passes_per_chain": passes,
        "reference": {
            "method": "NUTS (BlackJAX)",
            "smallest_ess": float(reference.ess),
            "data_passes": reference.datum_gradients / target.num_data,
            "seconds": reference.seconds,
        },
        "methods": [
            {
                "name": name,
                "steps": run.settings["num_steps"],
                "chains_ok": int(run.ok.sum()),
                **errors._asdict(),
                **{stat: float(np.nanmean(values[run.ok])) for stat, values in run.stats.items()},
                "cost": dataclasses.asdict(run.cost),
                "settings": run.settings,
            }
            for name, run, errors in outcomes
        ],
        "caption": "Left: posterior of one coefficient. Right: posterior sd of every coefficient over that of NUTS.",
    }


def _table(outcomes: list[Outcome], passes: int) -> Table:
    title = f"\nPosterior error after {passes} data passes per chain, against NUTS"
    table = Table(title=title, box=None, title_justify="left", pad_edge=False)
    for column in ("method", "steps", "mean error", "sd ratio", "worst", "kinetic T", "seconds"):
        justify = "left" if column == "method" else "right"
        table.add_column(column, justify=justify, header_style="bold", no_wrap=True)
    for name, run, errors in outcomes:
        temperature = np.nanmean(run.stats["kinetic_temperature"][run.ok])
        numbers = (errors.mean_rms, errors.sd_ratio_median, errors.sd_ratio_worst, temperature, run.cost.seconds)
        table.add_row(name, f"{run.settings['num_steps']:,}", *(f"{number:.2f}" for number in numbers))
    return table


def _explain(console: Console, reference: Reference, target: Target) -> None:
    passes = reference.datum_gradients / target.num_data / len(jax.tree.leaves(reference.draws)[0])
    console.print(
        "\nmean error: root mean square over coefficients, in posterior sd. sd ratio: median over coefficients and the "
        "worst; 1 is right. kinetic T: 1 is right, above it subsampling heats the chain. All rows cost the same number "
        f"of datum gradients; NUTS took {passes:,.0f} data passes per chain."
    )


def _figure(reference: Reference, outcomes: list[Outcome], path: Path) -> None:
    truth = diagnostics.flatten(reference.draws).reshape(-1, reference.mean.size)
    draws = [diagnostics.flatten(run.good_draws()).reshape(-1, truth.shape[1]) for _, run, _ in outcomes]
    ratios = [each.std(0) / truth.std(0) for each in draws]
    shown = int(np.argmax(np.abs(ratios[1] - 1)))
    low, high = np.quantile(truth[:, shown], [0.0005, 0.9995])
    bins = np.linspace(low - 0.4 * (high - low), high + 0.4 * (high - low), 45)
    with figures.drawing(path, columns=2) as (figure, (left, right)):
        left.hist(truth[:, shown], bins, density=True, color="0.85", label="NUTS (reference)")
        for i, outcome in enumerate(outcomes):
            color, marker, line = style(outcome.name)
            density, _ = np.histogram(draws[i][:, shown], bins, density=True)
            left.plot((bins[:-1] + bins[1:]) / 2, density, color=color, linestyle=line, linewidth=1.5)
            right.plot(np.sort(ratios[i]), marker=marker, color=color, linestyle=line, linewidth=0.8, markersize=4)
            left.plot([], marker=marker, color=color, linestyle=line, markersize=4, label=outcome.name)
        right.axhline(1.0, color="0.6", linewidth=1)
        left.set(xlabel=f"coefficient {shown}", ylabel="posterior density", title="Where SGHMC is furthest off")
        right.set(xlabel="coefficients, sorted", ylabel="posterior sd / sd of NUTS", title="Spread: 1 is right")
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, fontsize=8.5)
