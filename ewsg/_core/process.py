"""JAX does not survive a fork: its threads do not exist in the child, which waits for them forever."""

import os

from ..errors import InputError

_owner: int | None = None


def mark() -> None:
    """Remember the process that used JAX first."""
    global _owner
    if _owner is None:
        _owner = os.getpid()


def check() -> None:
    """Remember the process that uses JAX first; raise InputError in one that was forked from it."""
    mark()
    if _owner is not None and os.getpid() != _owner:
        raise InputError(
            "this process was forked after its parent had used JAX, and JAX would hang here: start workers with "
            'multiprocessing.get_context("spawn") (in joblib: the default backend, "loky")'
        )
