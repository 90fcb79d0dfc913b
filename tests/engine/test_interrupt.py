"""Signals: what a run does with them, and that nothing is lost."""

import signal

import pytest
from short_runs import equal, sample

import ewsg
from ewsg._engine import driver, interrupt
from ewsg.errors import InputError


@pytest.fixture
def signal_after(monkeypatch):
    """Sends a signal after some calls of the loop, which take three steps each."""

    def arrange(number, calls):
        seen = []

        def quota(taken, seconds, old):
            seen.append(taken)
            if len(seen) == calls:
                signal.raise_signal(number)
            return 3

        monkeypatch.setattr(driver, "next_quota", quota)

    return arrange


def test_an_interrupt_in_the_discarded_part_loses_nothing(gaussian, tmp_path, signal_after, monkeypatch, capfd):
    """Resumed by fewer steps than are left of it, then to the end of the plan: bit for bit the whole run."""
    path = tmp_path / "run.npz"
    whole = sample(gaussian)
    signal_after(signal.SIGINT, 2)
    part = sample(gaussian, save_to=path)
    monkeypatch.undo()
    assert part.interrupted
    assert part.draws.shape == (2, 0, 2)
    assert part.settings["num_steps"] == 8 + 3 < part.settings["discard"]
    assert "press Ctrl-C again" in capfd.readouterr().err
    short = ewsg.resume(path, gaussian, num_steps=4, save_to=path)
    assert short.settings["num_steps"] == 15
    assert short.draws.shape == (2, 0, 2)
    resumed = ewsg.resume(path, gaussian, save_to=path)
    equal((resumed.draws, resumed.stats, resumed.checkpoint.carry), (whole.draws, whole.stats, whole.checkpoint.carry))
    with pytest.raises(InputError, match="complete"):
        ewsg.resume(path, gaussian)


def test_sigterm_saves_and_then_takes_its_course(gaussian, tmp_path, signal_after):
    path, ended = tmp_path / "run.npz", []
    signal_after(signal.SIGTERM, 3)
    previous = signal.signal(signal.SIGTERM, lambda number, frame: ended.append(path.exists()))
    try:
        run = sample(gaussian, save_to=path)
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert ended == [True]
    assert run.interrupted
    assert ewsg.load(path).settings["num_steps"] == run.settings["num_steps"] == 8 + 2 * 3


def test_a_second_sigterm_does_not_disturb_the_save(capfd):
    ended = []
    previous = signal.signal(signal.SIGTERM, lambda number, frame: ended.append(number))
    try:
        with interrupt.deferred(terminate=True) as stop:
            for _ in range(3):
                signal.raise_signal(signal.SIGTERM)
            assert stop()
            assert ended == []
    finally:
        signal.signal(signal.SIGTERM, previous)
    assert ended == [signal.SIGTERM]
    assert capfd.readouterr().err.count("told to terminate") == 1


def test_a_handler_that_was_not_set_from_python(monkeypatch):
    set_handler = signal.signal
    monkeypatch.setattr(interrupt.signal, "signal", lambda number, handler: set_handler(number, handler) and None)
    try:
        with interrupt.deferred() as stop:
            assert not stop()
        assert signal.getsignal(signal.SIGINT) == signal.SIG_DFL
    finally:
        set_handler(signal.SIGINT, signal.default_int_handler)


def test_a_second_interrupt_is_not_held_back():
    from ewsg._engine import interrupt

    with interrupt.deferred() as interrupted:
        signal.raise_signal(signal.SIGINT)
        assert interrupted()
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
