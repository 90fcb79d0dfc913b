"""Ctrl-C and SIGTERM as a question that a loop asks between two calls, not as an exception in the middle of one."""

import contextlib
import signal
import sys
import threading
from collections.abc import Callable, Iterator

_HELD_BACK = {
    signal.SIGINT: "ewsg: stopping after the present steps; press Ctrl-C again to stop at once",
    signal.SIGTERM: "ewsg: told to end; saving after the present steps",
}


class Stop:
    """Which signal asked for the end of a run, if any."""

    signal: int | None = None

    def __call__(self) -> bool:
        """Whether the run should end."""
        return self.signal is not None


@contextlib.contextmanager
def deferred(*, terminate: bool = False) -> Iterator[Callable[[], bool]]:
    """Yields a function that says whether the run should end.

    A second Ctrl-C raises KeyboardInterrupt as usual. Signals reach the main thread only: elsewhere none is held back.

    Args:
        terminate: hold back SIGTERM too, which a cluster sends at its time limit. It takes its usual course once the
            block is left, after whatever was saved there.
    """
    stop = Stop()
    if threading.current_thread() is not threading.main_thread():
        yield stop
        return

    def handler(signum, frame):
        if stop() and signum == signal.SIGINT:
            raise KeyboardInterrupt
        if not stop():
            print(_HELD_BACK[signum], file=sys.stderr, flush=True)
        stop.signal = signum

    held = [signal.SIGINT, signal.SIGTERM] if terminate else [signal.SIGINT]
    previous = {number: signal.signal(number, handler) for number in held}
    try:
        yield stop
    finally:
        for number, handle in previous.items():
            signal.signal(number, signal.SIG_DFL if handle is None else handle)  # None: it was not set from Python
    if stop.signal == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)  # Windows has no other way that handlers see
