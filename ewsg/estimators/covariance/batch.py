"""The sample covariance of the present minibatch."""

from ..._core.types import Key, Position
from ...interface import Kick
from ...target.target import Target
from .base import AbstractCovariance, Drag, Draw, Pull, check_sampled, deviations
from .forms import AbstractForm, AbstractSampledForm
from .settings import Settings


class BatchCovariance(AbstractCovariance[AbstractSampledForm]):
    """Mode "batch": nothing is carried from step to step, and no d × d matrix is formed."""

    form: AbstractSampledForm

    @staticmethod
    def check(settings: Settings) -> None:
        check_sampled("batch", settings)

    @classmethod
    def make(cls, settings: Settings, form: AbstractForm) -> "BatchCovariance":
        del settings
        assert isinstance(form, AbstractSampledForm)
        return cls(form)

    def init(self, key: Key, position: Position) -> tuple[()]:
        del key, position
        return ()

    def drag(self, target: Target, kick: Kick, draw: Draw, pull: Pull, state: tuple[()]) -> Drag:
        rows = deviations(target, kick.position, draw)
        return Drag(self.form.row_drag(rows, pull.root, pull.momentum, pull.rates), state, 0, {})

    def cost(self, batch_size: int) -> int:
        return batch_size
