"""What a run cost."""

import dataclasses

from .._engine.driver import Snapshot
from ..sampler import AbstractSampler


@dataclasses.dataclass(frozen=True)
class RunCost:
    """What a run cost.

    Attributes:
        datum_gradients: gradients of one datum, all chains together.
        datum_directional: directional derivatives of one datum (forward passes), all chains together.
        data_passes: datum gradients per chain over n, preparation included: the paper's budget.
        seconds: time in the sampling loop.
        compile_seconds: time spent compiling it.
        planning_gradients: the part of the datum gradients that a plan took (`ewsg.plan`), given-up pilots included;
            in `data_passes` it is shared out among the chains.
        planning_seconds: time that the plan took, compilation included; not part of `seconds`.
        diagnostic_directional: directional derivatives that only the noise ratio of `run.stats` took, over and above
            the method's own.
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
        """The cost so far: chains count from the very start, clocks from where `earlier` ends."""
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
        """The same, and so much more time."""
        return dataclasses.replace(
            self, seconds=self.seconds + seconds, compile_seconds=self.compile_seconds + compile_seconds
        )
