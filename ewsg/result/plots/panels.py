"""One panel each: a marginal, traces, a pair of parameters, temperatures, the noise of the minibatches."""

from typing import TYPE_CHECKING, Any

import numpy as np
from jaxtyping import Float

from ..estimates import interval
from .look import BLUE, CHAINS, GREEN, INK, ORANGE
from .shown import Shown

if TYPE_CHECKING:
    from ..run import Run

LARGEST_NOISE_RATIO = 0.1
"""What uniform minibatches may have: they inflate the posterior variance by about as much."""
TEMPERATURES = {"kinetic_temperature": BLUE, "configurational_temperature": ORANGE}
MOST_CHAINS = len(CHAINS)
_MOST_BINS, _LEAST_BINS = 40, 5
_MOST_POINTS_OF_A_TRACE = 250
_MOST_POINTS_OF_A_PAIR = 800
_MOST_TIMES = 60
_LONGEST_NAME = 30


def marginal(axes: Any, one: Shown) -> None:
    """The distribution of the draws, with their mean and the interval of the table."""
    _title(axes, one.mixed.name)
    draws = one.draws[np.isfinite(one.draws)]
    if not draws.size:
        axes.set_axis_off()
        _note(axes, "no draw is finite")
        return
    low, high = (float(end) for end in interval(draws[None, None])[:, 0])
    heights, edges = _histogram(draws)
    axes.stairs(heights, edges, fill=True, color=BLUE, alpha=0.45, gid="histogram")
    axes.axvline(draws.mean(), color=INK, linewidth=1, linestyle="--", gid="mean")
    axes.plot([low, high], [0, 0], color=INK, linewidth=4, solid_capstyle="butt", clip_on=False, gid="interval")
    axes.set_ylim(bottom=0)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.locator_params(axis="x", nbins=5)
    axes.set_xlabel(f"mean {draws.mean():.3g}, 90 % between {low:.3g} and {high:.3g}")


def _histogram(draws: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Density in about √N bins; one bin where all draws are equal, up to rounding."""
    draws = draws.astype(np.float64)
    low, high = draws.min(), draws.max()
    edges = np.linspace(low, high, int(np.clip(np.sqrt(draws.size), _LEAST_BINS, _MOST_BINS)) + 1)
    if not np.all(np.diff(edges) > 0):  # the draws are so close to each other that their range cannot be divided
        half = max(0.5, float(np.spacing(max(abs(low), abs(high)))))
        edges = np.array([low - half, high + half])
    return np.histogram(draws, edges, density=True)


def trace(axes: Any, one: Shown) -> None:
    """The draws in their order, one line per chain."""
    count = one.draws.shape[1]
    kept = np.arange(0, count, _every(count, _MOST_POINTS_OF_A_TRACE))
    for draws, colour in zip(one.draws, CHAINS, strict=False):
        axes.plot(kept + 1, draws[kept], color=colour, linewidth=0.8, alpha=0.8, marker="." if count < 3 else "")
    _title(axes, one.mixed.name, f", R-hat {one.mixed.rhat:.2f}" if one.mixed.rhat > 0 else "")
    axes.set_xlabel("draw")


def pair(axes: Any, first: Shown, second: Shown) -> None:
    """Draws of two parameters, in the colours of the chains."""
    chains = list(zip(first.draws, second.draws, CHAINS, strict=False))
    every = _every(first.draws.shape[1] * len(chains), _MOST_POINTS_OF_A_PAIR)
    for one, other, colour in chains:
        axes.plot(one[::every], other[::every], ".", color=colour, markersize=4.5, alpha=0.6, markeredgewidth=0)
    _title(axes, "the two that mix worst" if first.mixed.rhat > 0 else "two parameters")
    axes.locator_params(axis="x", nbins=6)
    axes.set_xlabel(_short(first.mixed.name), parse_math=False)
    axes.set_ylabel(_short(second.mixed.name), parse_math=False)


def temperatures(axes: Any, run: "Run") -> None:
    """Kinetic and configurational temperature over time, and the temperature T of the target."""
    for name, colour in TEMPERATURES.items():
        if has(run, name):
            axes.plot(*_over_time(run, name), color=colour, label=name.removesuffix("_temperature"), gid=name)
    axes.axhline(run.temperature, color=INK, linewidth=1, linestyle="--", label=f"right: {run.temperature:g}")
    _over_draws(axes, "temperature")


def noise(axes: Any, run: "Run") -> None:
    """The ratio of gradient noise to injected noise over time, and the largest that uniform minibatches may have."""
    axes.plot(*_over_time(run, "noise_ratio"), color=GREEN, label="gradient / injected", gid="noise_ratio")
    label = f"at most {LARGEST_NOISE_RATIO:g}" + (", unless paired" if "tilt_second" in run.stats else "")
    axes.axhline(LARGEST_NOISE_RATIO, color=INK, linewidth=1, linestyle="--", label=label)
    axes.set_ylim(bottom=0)
    _over_draws(axes, "noise ratio")


def has(run: "Run", name: str) -> bool:
    """Whether a diagnostic was measured in a good chain, and is not 0 as the noise of exact gradients is."""
    return name in run.stats and bool((np.nan_to_num(run.stats[name][run.ok]) != 0).any())


def _over_time(run: "Run", name: str) -> tuple[Float[np.ndarray, " t"], Float[np.ndarray, " t"]]:
    """Draw numbers, and the mean of a diagnostic over the good chains and the draws around each."""
    values = np.ma.masked_invalid(np.asarray(run.stats[name][run.ok], np.float64))
    blocks = np.array_split(np.arange(values.shape[1]), min(_MOST_TIMES, values.shape[1]))
    means = [float(np.ma.filled(values[:, block].mean(), np.nan)) for block in blocks]
    return np.array([block.mean() + 1 for block in blocks]), np.array(means)


def _over_draws(axes: Any, title: str) -> None:
    _title(axes, title)
    axes.set_xlabel("draw")
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + 0.35 * (high - low))  # for the legend
    axes.legend(loc="upper left", ncols=3, handlelength=1.4, columnspacing=1.0, borderaxespad=0.0)


def _every(count: int, most: int) -> int:
    return max(1, -(-count // most))


def _title(axes: Any, name: str, more: str = "") -> None:
    axes.set_title(_short(name) + more, parse_math=False)


def _short(name: str) -> str:
    """A name that fits above a panel: the middle of a long one is left out."""
    half = _LONGEST_NAME // 2
    return name if len(name) <= _LONGEST_NAME else f"{name[:half]}…{name[-half:]}"


def _note(axes: Any, text: str) -> None:
    axes.text(0.5, 0.5, text, ha="center", va="center", transform=axes.transAxes)
