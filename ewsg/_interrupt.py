"""Ctrl-C and SIGTERM as a question that a loop asks between two calls, not as an exception in the middle of one."""

import contextlib
import os
import signal
import socket
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
        stop.signal = signum

    held = [signal.SIGINT, signal.SIGTERM] if terminate else [signal.SIGINT]
    previous = {number: signal.signal(number, handler) for number in held}
    try:
        with _announced(held):
            yield stop
    finally:
        for number, handle in previous.items():
            signal.signal(number, signal.SIG_DFL if handle is None else handle)  # None: it was not set from Python
    if stop.signal == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)  # Windows has no other way that handlers see


@contextlib.contextmanager
def _announced(held: list[signal.Signals]) -> Iterator[None]:
    """Says of the first of these signals that it was seen, at once.

    Python calls a handler only when the main thread is back from the compiler, which may be minutes later. The number
    of a signal is written to a socket before that, and another thread reads it there.
    """
    reading, writing = socket.socketpair()
    writing.setblocking(False)
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    thread = threading.Thread(target=_announce, args=(reading, held, before), daemon=True)
    thread.start()
    try:
        yield
    finally:
        signal.set_wakeup_fd(before)
        writing.close()
        thread.join()
        reading.close()


def _announce(reading: socket.socket, held: list[signal.Signals], before: int) -> None:
    """Reads signals until the other end is closed; whoever waited for them `before`, an event loop, gets them too."""
    told = False
    while numbers := reading.recv(64):
        if before != -1:
            with contextlib.suppress(OSError):
                os.write(before, numbers)
        for number in held:
            if number in numbers and not told:
                print(_HELD_BACK[number], file=sys.stderr, flush=True)
                told = True
