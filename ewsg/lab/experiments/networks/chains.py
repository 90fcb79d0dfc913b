"""Independent chains of a network, kept in parts of a few chains each: what ensembles of any size are judged by later.

Of each chain a part holds the class probabilities of its last sample for the test images, in 255ths, and the training
error of its samples on the way.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from .... import prediction
from ....recipes import Method
from ....sampling import sample
from ..experiment import COSTS, Work
from . import shared
from .report import Architecture

LEVELS = 255


class Chains(NamedTuple):
    """The chains of one method at one temperature.

    Attributes:
        probabilities: of the last samples, of shape (chains, images, classes), in 255ths.
        errors: of the last samples, the share of wrong test images, before rounding.
        curves: share of wrong training images, of shape (chains, samples).
        passes: data passes at each sample of the curve.
        diverged: how many further chains were lost.
    """

    probabilities: np.ndarray
    errors: np.ndarray
    curves: np.ndarray
    passes: np.ndarray
    diverged: int

    @classmethod
    def of_parts(cls, parts: list[dict[str, np.ndarray]]) -> "Chains":
        """All chains of the parts, in their order."""
        joined = {key: np.concatenate([part[key] for part in parts]) for key in ("probabilities", "errors", "curves")}
        diverged = sum(int(part["diverged"]) for part in parts)
        return cls(**joined, passes=parts[0]["passes"], diverged=diverged)


def part(
    work: Work, here: shared.NetworkProblem, architecture: Architecture, name: str, temperature: float, seed: int
) -> dict[str, np.ndarray] | None:
    """One part of a method's chains; its seed is its number. None if it is not stored and nothing is to be computed."""
    h, friction = architecture.steps[name] * work["step_factor"], architecture.friction
    settings = {key: work[key] for key in ("images", "hidden", "batch", "epochs", "curve_rows", "snapshots")}
    settings |= {"h": h, "friction": friction, "chains": work["chains_per_part"], "seed": seed}
    how = shared.method(name, work["batch"], h, friction, temperature)
    title = f"{name}, T = {temperature:g}, part {seed:02d}"
    return work.arrays(title, settings, lambda: _compute(work, here, how, seed))


def _compute(work: Work, here: shared.NetworkProblem, how: Method, seed: int) -> dict[str, Any]:
    steps, thin, passes = shared.schedule(work, here, how)
    options = {"num_chains": work["chains_per_part"], "num_steps": steps, "discard": 0, "thin": thin}
    run = sample(here.target, how, init=here.start, seed=seed, progress=False, **options)
    if run.settings["interrupted"]:
        raise KeyboardInterrupt
    ended = {"diverged": int((~run.ok).sum()), "cost": [getattr(run.cost, key) for key in COSTS]}
    if not run.ok.any():
        probabilities = np.zeros((0, len(here.test), shared.CLASSES), np.uint8)
        curves = np.zeros((0, len(passes)), np.float32)
        return ended | {
            "probabilities": probabilities,
            "errors": np.zeros(0),
            "curves": curves,
            "passes": np.array(passes),
        }
    draws = run.good_draws()
    last = prediction.predict(here.logits, jax.tree.map(lambda leaf: leaf[:, -1:], draws), here.test, "classes")
    return ended | {
        "probabilities": np.rint(LEVELS * last.by_chain).astype(np.uint8),
        "errors": np.mean(last.by_chain.argmax(2) != here.test_labels, axis=1),
        "curves": np.array(shared.curves(here, draws), np.float32),
        "passes": np.array(passes),
    }
