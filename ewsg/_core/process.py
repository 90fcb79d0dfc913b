"""JAX does not survive a fork: its threads are not in the child, which then waits for them for ever."""

import os

from ..errors import InputError

_owner: int | None = None


def mark() -> None:
    """Remember the process that used JAX first."""
    global _owner
    if _owner is None:
        _owner = os.getpid()


def check() -> None:
    """Raise InputError in a process that was forked from the marked one."""
    if _owner is not None and os.getpid() != _owner:
        raise InputError(
            "this process was forked after its parent had used JAX, and JAX would hang here: start workers with "
            'multiprocessing.get_context("spawn") (in joblib: the default backend, "loky")'
        )
