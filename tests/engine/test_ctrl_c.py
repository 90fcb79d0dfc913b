"""Ctrl-C is answered at once, even when Python itself cannot run a handler."""

import hashlib
import os
import signal
import socket
import sys
import threading
import time

import pytest

from ewsg._engine import interrupt

WORK = 1_000_000  # rounds of hashing, about half a second or more


class Heard:
    """A stream that notes when something was written to it."""

    def __init__(self):
        self.words, self.at = "", None

    def write(self, text):
        self.words += text
        self.at = self.at or time.perf_counter()

    def flush(self):
        pass


@pytest.mark.untyped
def test_ctrl_c_is_answered_while_the_main_thread_is_inside_a_library(monkeypatch):
    """As in the compiler: no handler runs before the call is over, and the press was answered only then."""
    heard, sent = Heard(), []
    monkeypatch.setattr(sys, "stderr", heard)

    def press():
        time.sleep(0.05)
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=press)
    with interrupt.deferred() as stop:
        thread.start()
        hashlib.pbkdf2_hmac("sha256", b"", b"", WORK)
        ended = time.perf_counter()
        assert stop()
    thread.join()
    assert heard.words.count("press Ctrl-C again") == 1
    assert heard.at - sent[0] < (ended - sent[0]) / 2


def test_an_event_loop_still_hears_of_signals():
    """What waited for signals before hears of them meanwhile, and again afterwards."""
    reading, writing = socket.socketpair()
    with reading, writing:
        writing.setblocking(False)
        outside = signal.set_wakeup_fd(writing.fileno())
        try:
            with interrupt.deferred():
                os.kill(os.getpid(), signal.SIGINT)
            assert signal.set_wakeup_fd(outside) == writing.fileno()
        finally:
            signal.set_wakeup_fd(outside)
        assert reading.recv(8) == bytes([signal.SIGINT])
