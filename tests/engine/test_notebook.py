"""The progress bar of a notebook, with a stand-in for IPython that notes what is displayed."""

import contextlib
import sys
from types import SimpleNamespace

import pytest

from ewsg._engine import notebook, progress


@pytest.fixture
def outputs(monkeypatch):
    """What a cell shows: (how, HTML, text) of every display and update, and a clock that a test can set."""
    shown = []

    def display(value, *, display_id):
        assert display_id is True
        note("display", value)
        return SimpleNamespace(update=lambda value: note("update", value))

    def note(how, value):
        shown.append((how, value._repr_html_(), repr(value)))

    kernel = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=object()))
    monkeypatch.setitem(sys.modules, "IPython", kernel)
    monkeypatch.setitem(sys.modules, "IPython.display", SimpleNamespace(display=display))
    monkeypatch.setattr(progress, "_QUIET_SECONDS", -1.0)
    return shown


@pytest.fixture
def clock(monkeypatch):
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(notebook.time, "perf_counter", lambda: now.seconds)
    return now


def test_one_output_is_updated_at_most_four_times_per_second(outputs, clock):
    with progress.bar(100, None) as update:
        for done in range(1, 101):
            clock.seconds = done * 0.1
            update(done, "9 steps/s")
    assert [how for how, *_ in outputs] == ["display"] + ["update"] * (len(outputs) - 1)
    assert 30 <= len(outputs) <= 40


def test_it_says_how_much_is_done_and_how_long_it_will_take(outputs, clock):
    """What came before the first update was compilation, which does not come again."""
    with progress.bar(100, None, "NUTS") as update:
        clock.seconds = 45.0
        update(5, "")
        clock.seconds = 65.0
        update(25, "a < b")
    (_, _, first), (_, page, text), (_, last, _) = outputs
    assert first == "NUTS  5%  0:00:45 elapsed"
    assert text == "NUTS  25%  0:01:15 left  a < b"
    assert 'value="0.2500"' in page
    assert "a &lt; b" in page
    assert "0:01:05 elapsed" in last


def test_a_search_of_unknown_length_shows_no_share_and_comes_to_rest(outputs, clock):
    with progress.bar(1, None, "planning") as update:
        clock.seconds = 3.0
        update(0, "looking for the mode")
    (_, page, text), (_, last, _) = outputs
    assert "<progress" in page
    assert "value=" not in page
    assert text == "planning  0:00:03 elapsed  looking for the mode"
    assert "<progress" not in last


def test_nothing_is_shown_where_it_is_not_wanted_or_not_needed(outputs, monkeypatch):
    with progress.bar(10, False) as update:
        update(1, "")
    monkeypatch.setattr(progress, "_QUIET_SECONDS", 1e9)
    with progress.bar(10, None) as update:
        update(1, "")
    assert outputs == []


def test_an_error_leaves_the_bar_at_rest(outputs):
    with contextlib.suppress(ZeroDivisionError), progress.bar(10, None) as update:
        update(1, "")
        update(1 // 0, "")
    assert "elapsed" in outputs[-1][2]


@pytest.mark.parametrize("shell", [None, SimpleNamespace()])
def test_ipython_on_a_terminal_is_no_notebook(monkeypatch, shell):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert not notebook.has_kernel()
    monkeypatch.delitem(sys.modules, "IPython")
    assert not notebook.has_kernel()
