"""The cost of a run: evaluations and time."""

import dataclasses

from .._engine.driver import Snapshot
from ..sampler import AbstractSampler


@dataclasses.dataclass(frozen=True)
class RunCost:
    """The cost of a run.

    Attributes:
        datum_gradients: the number of gradients of one datum, over all chains.
        datum_directional: the number of directional derivatives of one datum (forward passes), over all chains.
        data_passes: datum gradients per chain (the most of any chain), with the preparation, over n: the paper's
            budget.
        seconds: time in the sampling loop.
        compile_seconds: time spent compiling it.
        planning_gradients: the datum gradients that planning took (`ewsg.plan`), abandoned pilots included. They are
            part of `datum_gradients`; in `data_passes` they are divided among the chains.
        planning_seconds: the time that planning took, compilation included; not part of `seconds`.
        diagnostic_directional: directional derivatives for the noise ratio in `run.stats`, which are not part of
            `datum_directional`.
    """

    datum_gradients: int = 0
    datum_directional: int = 0
    data_passes: float = 0.0
    seconds: float = 0.0
    compile_seconds: float = 0.0
    diagnostic_directional: int = 0
    planning_gradients: int = 0
    planning_seconds: float = 0.0

    @staticmethod
    def of(snapshot: Snapshot, sampler: AbstractSampler, earlier: "RunCost") -> "RunCost":
        """The cost so far: evaluations are counted from the very start, times are added to those of `earlier`."""
        gradients, preparation = snapshot.datum_gradients, sampler.preparation_cost()
        passes = (gradients.max() + int(preparation.datum_gradients)) / sampler.target.num_data
        shared = earlier.planning_gradients / len(gradients) / sampler.target.num_data
        return RunCost(
            datum_gradients=int(gradients.sum()) + int(preparation.datum_gradients) + earlier.planning_gradients,
            planning_gradients=earlier.planning_gradients,
            planning_seconds=earlier.planning_seconds,
            datum_directional=int(snapshot.datum_directional.sum()) + int(preparation.datum_directional),
            diagnostic_directional=snapshot.num_probes * sampler.probe_cost(),
            data_passes=float(passes + shared),
            seconds=earlier.seconds + snapshot.seconds,
            compile_seconds=earlier.compile_seconds + snapshot.compile_seconds,
        )

    def with_time(self, seconds: float, compile_seconds: float) -> "RunCost":
        """The same cost with more time."""
        return dataclasses.replace(
            self, seconds=self.seconds + seconds, compile_seconds=self.compile_seconds + compile_seconds
        )
