"""Covariances of the minibatch force for `CovarianceFriction`: how they are estimated (modes) and stored (forms)."""

from ..._core.component import check_choice
from .base import AbstractCovariance, Draw, Pull
from .batch import BatchCovariance
from .drag import Rates
from .forms import GradientMoments, check_form, make_form
from .running import RunningCovariance
from .settings import OWNER, Settings
from .svrg import SVRGCovariance

MODES: dict[str, type[AbstractCovariance]] = {
    "svrg": SVRGCovariance,
    "running": RunningCovariance,
    "batch": BatchCovariance,
}
"""The modes of `CovarianceFriction` by name."""

__all__ = ["AbstractCovariance", "Draw", "GradientMoments", "Pull", "Rates", "Settings", "check", "make"]


def check(settings: Settings) -> None:
    """Raise InputError unless the settings fit their form and mode, and none is meant for another mode."""
    check_choice(OWNER, "mode", settings.mode, tuple(MODES))
    check_form(settings)
    for mode in MODES.values():
        mode.check(settings)


def make(settings: Settings) -> AbstractCovariance:
    """The covariance with these settings."""
    return MODES[settings.mode].make(settings, make_form(settings))
