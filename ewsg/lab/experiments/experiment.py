"""Experiments, and the tools they work with: settings of a scale, a folder of finished parts, a tally of costs."""

import dataclasses
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console

from ..._core.component import describe
from ..._core.types import Position
from ...recipes import Method
from ...result.run import Run
from ...sampler import AbstractKernel
from ...sampling import sample
from ...target.target import Target
from ..folder import Folder
from .claims import Claim

SCALES = ("smoke", "laptop", "paper")
MOST_FAILED = 0.01
"""The largest share of diverged chains with which a run still counts."""
COSTS = ("datum_gradients", "datum_directional", "seconds", "compile_seconds")
_WORTH_SAYING = 2.0


class Outcome(NamedTuple):
    """The findings of an experiment.

    Attributes:
        numbers: everything measured, with errors.
        claims: the paper's claims, each with our verdict.
        figures: captions by file name without suffix.
        reading: how we read the paper where it is silent, one sentence each.
        tuning: the step sizes used, the grid, and the rule by which they were chosen.
    """

    numbers: dict[str, Any]
    claims: list[Claim]
    figures: dict[str, str]
    reading: list[str]
    tuning: dict[str, Any]


def column(parts: Iterable[Mapping[str, Any]], read: Callable[[Any], float]) -> list[float | None]:
    """One number of each part of `Work.sample`; None where its chains diverged."""
    return [read(part["value"]) if part["value"] else None for part in parts]


class Experiment(NamedTuple):
    """One figure or table of the paper.

    Attributes:
        name: of the command line.
        shows: what the paper shows there, in one line.
        scales: the settings of each of `SCALES`.
        run: does the work.
        heavy: whether it takes hours at `laptop` scale, so that `ewsg reproduce --all` leaves it out.
    """

    name: str
    shows: str
    scales: Mapping[str, Mapping[str, Any]]
    run: Callable[["Work"], Outcome]
    heavy: bool = False


class Work:
    """An experiment at one scale: runs each chain once, keeps its results, and adds up the cost."""

    def __init__(self, folder: Folder, settings: Mapping[str, Any], console: Console):
        self.folder = folder
        self.settings = dict(settings)
        self.seeds: set[int] = set()
        self.cost: dict[str, float] = dict.fromkeys(("runs", *COSTS), 0)
        self._console = console

    def __getitem__(self, name: str) -> Any:
        return self.settings[name]

    def sample(
        self,
        name: str,
        target: Target,
        method: Method | AbstractKernel,
        measure: Callable[[Run], Any],
        *,
        init: Position | Callable[[Any], Position],
        seed: int = 0,
        **options: Any,
    ) -> dict[str, Any]:
        """The result of `measure` on a run, None if its chains diverged; computed once for a name and its settings.

        Args:
            name: cache key of the part; it must change whenever anything other than `method` and the options changes,
            such as the target.
            target: the posterior.
            method: the sampler.
            measure: from a run to anything JSON can hold; diverged chains have been left out.
            init: where chains start.
            seed: of the chains.
            **options: of `ewsg.sample`.

        Returns:
            `value`, the share of chains that `failed`, the numbers of `steps` and `chains`, and the `cost`.
        """
        parts = list(method) if isinstance(method, Method) else [method]
        settings = {"method": [describe(part) for part in parts], "seed": seed, **options}

        def compute() -> dict[str, Any]:
            run = sample(target, method, init=init, seed=seed, progress=False, **options)
            if run.settings["interrupted"]:
                raise KeyboardInterrupt
            failed = float(1 - run.ok.mean())
            return {
                "value": measure(run) if failed <= MOST_FAILED else None,
                "failed": failed,
                "steps": run.settings["num_steps"],
                "chains": len(run.ok),
                "cost": dataclasses.asdict(run.cost),
            }

        found = self.part(name, settings, compute)
        self.seeds.add(seed)
        self.cost["runs"] += 1
        for key in COSTS:
            self.cost[key] += found["cost"][key]
        return found

    def part(self, name: str, settings: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """The result of `compute`, computed once; announced if that took a while."""
        return self.folder.part(name, {**settings, "experiment": self.settings}, self._announced(name, compute))

    def arrays(
        self, name: str, settings: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]]
    ) -> dict[str, np.ndarray] | None:
        """The arrays of `compute`, from a file of their own; their `cost`, in the order of `COSTS`, is added up.

        Args:
            name: of the part.
            settings: that decide the arrays, a `seed` among them.
            compute: from nothing to arrays by name, with their `cost`.

        Returns:
            None if they are not stored, and the folder takes stored parts only.
        """
        found = self.folder.arrays(name, settings, None if self.folder.stored else self._announced(name, compute))
        if found is not None:
            self.seeds.add(settings["seed"])
            self.cost["runs"] += 1
            for key, spent in zip(COSTS, found["cost"].tolist(), strict=True):
                self.cost[key] += spent
        return found

    def figure(self, name: str) -> Path:
        """The path of a figure, in a folder that exists."""
        self.folder.path.mkdir(parents=True, exist_ok=True)
        return self.folder.path / name

    def _announced(self, name: str, compute: Callable[[], Any]) -> Callable[[], Any]:
        def announced() -> Any:
            began = time.perf_counter()
            value = compute()
            seconds = time.perf_counter() - began
            if seconds > _WORTH_SAYING:
                self._console.print(f"  {name} ({seconds:.0f} s)", highlight=False, soft_wrap=True)
            return value

        return announced
