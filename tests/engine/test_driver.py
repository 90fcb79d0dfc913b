"""The driver: how many steps a call takes, and when the run is saved."""

import pytest
from short_runs import equal, sample

import ewsg
from ewsg._engine import driver


def test_a_full_disk_costs_a_warning_and_not_the_run(gaussian, tmp_path, monkeypatch):
    whole = sample(gaussian)

    def full(run, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(ewsg.Run, "save", full)
    with pytest.warns(RuntimeWarning, match="could not be saved to .*run.npz .*No space left"):
        run = sample(gaussian, save_to=tmp_path / "run.npz")
    equal(run.draws, whole.draws)


@pytest.mark.untyped
def test_slow_saves_are_rare(monkeypatch):
    """A save of ten seconds is followed by 200 seconds without one; a quick one by a minute."""
    now, saves = [0.0], []

    class SlowRun:
        def save(self, path):
            saves.append(now[0])
            now[0] += 10.0

    monkeypatch.setattr(driver.time, "perf_counter", lambda: now[0])
    saver = driver._Saver("run.npz")
    while now[0] < 600:
        now[0] += 1
        saver.now_and_then(SlowRun)
    assert saves == [60, 270, 480]


@pytest.mark.parametrize(
    ("taken", "seconds", "quota", "wanted"),
    [
        (1000, 0.1, 1000, 10_000),  # a second's worth
        (8, 1e-4, 8, 128),  # but not more than sixteen times as many as before
        (8, 2.0, 8, 8),  # slow steps eight at a time
        (8, 5.6, 8, 4),  # as many as take three seconds
        (1, 9.0, 8, 1),  # one, if it takes longer
    ],
)
def test_how_many_steps_a_call_takes(taken, seconds, quota, wanted):
    assert driver._next_quota(taken, seconds, quota) == wanted
