"""The progress bar: silent unless it is wanted and the run is long."""

import contextlib
import io

import pytest

from ewsg._engine import progress


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def stderr(monkeypatch):
    """Gives a function that puts a terminal, or a file, in the place of stderr."""

    def replace(terminal):
        stream = Terminal() if terminal else io.StringIO()
        monkeypatch.setattr("sys.stderr", stream)
        return stream

    return replace


def run(enabled):
    with progress.bar(10, enabled, "sampling") as update:
        for done in range(11):
            update(done, f"{done} steps/s")


@pytest.mark.parametrize(
    ("enabled", "terminal", "shown"), [(None, True, True), (None, False, False), (False, True, False)]
)
def test_a_long_run_shows_a_bar_on_a_terminal(monkeypatch, stderr, enabled, terminal, shown):
    monkeypatch.setattr(progress, "_QUIET_SECONDS", -1.0)
    stream = stderr(terminal)
    run(enabled)
    assert ("100%" in stream.getvalue()) is shown
    assert ("10 steps/s" in stream.getvalue()) is shown


def test_asked_for_it_is_shown_anywhere(monkeypatch, stderr):
    monkeypatch.setattr(progress, "_QUIET_SECONDS", -1.0)
    stream = stderr(False)
    run(True)
    assert "sampling" in stream.getvalue()


def test_a_short_run_shows_nothing(stderr):
    stream = stderr(True)
    run(None)
    assert stream.getvalue() == ""


def test_an_error_ends_the_bar(monkeypatch, stderr):
    monkeypatch.setattr(progress, "_QUIET_SECONDS", -1.0)
    stream = stderr(True)
    with contextlib.suppress(ZeroDivisionError), progress.bar(10, None) as update:
        update(1, "")
        update(1 // 0, "")
    assert stream.getvalue().endswith("\n") or "\x1b[?25h" in stream.getvalue()  # the cursor is back
