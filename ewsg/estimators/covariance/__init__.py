"""Covariances of the minibatch force, by where they come from (modes) and how they are held (forms)."""

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
    """Raise InputError unless every mode and form agrees to the settings, its own and those it shares."""
    check_choice(OWNER, "mode", settings.mode, tuple(MODES))
    check_form(settings)
    for mode in MODES.values():
        mode.check(settings)


def make(settings: Settings) -> AbstractCovariance:
    """The covariance with these settings."""
    return MODES[settings.mode].make(settings, make_form(settings))
