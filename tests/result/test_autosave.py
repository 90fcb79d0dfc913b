"""When a run is saved, and what a full disk costs."""

import pytest
from short_runs import equal, sample

import ewsg
from ewsg.result import autosave


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

    monkeypatch.setattr(autosave.time, "perf_counter", lambda: now[0])
    saver = autosave.Autosave("run.npz")
    while now[0] < 600:
        now[0] += 1
        saver.if_due(SlowRun)
    assert saves == [60, 270, 480]
