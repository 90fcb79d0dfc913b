"""Posteriors on which samplers are compared, each with a reference answer: `load(name)` builds one.

Example:
    >>> import ewsg.problems
    >>> problem = ewsg.problems.load("gaussian")
    >>> problem.target.num_data, ewsg.problems.answer("gaussian").mean.shape
    (50, (2,))
"""

from ..errors import unknown
from . import answers
from .base import Answer, Problem
from .gaussian import gaussian
from .hierarchical import hierarchical
from .network import network
from .regressions import a9a, parkinsons, pima, poisson, softmax
from .skewed import skewed

_BUILDERS = {
    "gaussian": gaussian,
    "pima": pima,
    "parkinsons": parkinsons,
    "a9a": a9a,
    "skewed": skewed,
    "poisson": poisson,
    "softmax": softmax,
    "hierarchical": hierarchical,
    "network": network,
}


def names() -> tuple[str, ...]:
    """All problems."""
    return tuple(_BUILDERS)


def load(name: str) -> Problem:
    """The problem of that name; published data are loaded by `ewsg.datasets`."""
    if name not in _BUILDERS:
        raise unknown("problem", name, _BUILDERS)
    return _BUILDERS[name]()


def answer(name: str, problem: Problem | None = None) -> Answer:
    """The reference answer of a problem: in closed form, or as NUTS found it once.

    Args:
        name: one of `names()`.
        problem: the result of `load(name)`, if there is one, so that it is not built again.
    """
    return answers.read(name, load(name) if problem is None else problem)


__all__ = ["Answer", "Problem", "answer", "load", "names"]
