"""Ctrl-C and SIGTERM as a flag that a loop checks between two calls, not an exception in the middle of one."""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator

_HELD_BACK = {
    signal.SIGINT: "ewsg: stopping after the current steps; press Ctrl-C again to stop at once",
    signal.SIGTERM: "ewsg: told to terminate; saving after the current steps",
}


class Stop:
    """The signal that asked for the end of a run, if any."""

    signal: int | None = None

    def __call__(self) -> bool:
        """Whether the run should end."""
        return self.signal is not None


@contextlib.contextmanager
def deferred(*, terminate: bool = False) -> Iterator[Callable[[], bool]]:
    """Yield a function that returns whether the run should end.

    A second Ctrl-C raises KeyboardInterrupt as usual. Python handles signals only in the main thread: in other threads
    this does nothing.

    Args:
        terminate: defer SIGTERM too, which a cluster sends at its time limit. It is delivered when the `with` block is
            left, inside which the run has been saved.
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
            signal.signal(number, signal.SIG_DFL if handle is None else handle)  # None: not installed from Python
    if stop.signal == signal.SIGTERM:
        signal.raise_signal(signal.SIGTERM)  # on Windows, the only way that reaches handlers


@contextlib.contextmanager
def _announced(held: list[signal.Signals]) -> Iterator[None]:
    """Acknowledge the first of these signals on stderr at once.

    Python calls a handler only when the main thread has returned from the compiler, which may be minutes later. Before
    that, the number of the signal is written to a socket, from which another thread reads it.
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
    """Read signals until the other end is closed, and pass them on to `before`, such as the socket of an event loop."""
    told = False
    while numbers := reading.recv(64):
        if before != -1:
            with contextlib.suppress(OSError):
                os.write(before, numbers)
        for number in held:
            if number in numbers and not told:
                print(_HELD_BACK[number], file=sys.stderr, flush=True)
                told = True
