"""The folder of an experiment: whose it is, and what is done."""

import errno
import json
from pathlib import Path

import numpy as np
import pytest

import ewsg
from ewsg.lab import demo, experiments, folder
from ewsg.lab.folder import Folder


def test_a_finished_part_is_not_computed_again(tmp_path):
    calls = []

    def compute():
        calls.append(1)
        return {"value": len(calls)}

    for _ in range(2):
        folder = Folder(tmp_path / "out", "first")
        assert folder.part("a", {"seed": 0}, compute) == {"value": 1}
    assert folder.part("a", {"seed": 1}, compute) == {"value": 2}
    assert folder.part("b", {"seed": 0}, compute) == {"value": 3}
    assert len(calls) == 3


def test_an_interrupted_part_is_not_kept(tmp_path):
    def interrupted():
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        Folder(tmp_path, "first").part("a", {}, interrupted)
    assert Folder(tmp_path, "first").part("a", {}, lambda: 7) == 7


def test_a_line_cut_short_is_computed_again(tmp_path):
    folder = Folder(tmp_path, "first")
    folder.part("a", {}, lambda: 1)
    folder.part("b", {}, lambda: 2)
    parts = tmp_path / "parts.jsonl"
    parts.write_text(parts.read_text()[:-10])
    again = Folder(tmp_path, "first")
    assert again.part("a", {}, lambda: 5) == 1
    assert again.part("b", {}, lambda: 5) == 5
    assert Folder(tmp_path, "first").part("b", {}, lambda: 6) == 5


def test_arrays_outlive_changes_of_code_but_not_of_settings(tmp_path, monkeypatch):
    def compute():
        return {"values": np.arange(3, dtype=np.uint8), "cost": [1.5]}

    Folder(tmp_path, "first").arrays("a, T = 1", {"seed": 0}, compute)
    monkeypatch.setattr(folder, "_code", lambda: "other")
    again = Folder(tmp_path, "first")
    found = again.arrays("a, T = 1", {"seed": 0})
    assert found is not None
    assert set(found) == {"values", "cost"}
    assert found["values"].tolist() == [0, 1, 2]
    assert found["values"].dtype == np.uint8
    assert again.arrays("a, T = 1", {"seed": 1}) is None
    assert again.arrays("b", {"seed": 0}) is None
    assert [path.name[:-13] for path in (tmp_path / "arrays").iterdir()] == ["a-T-1"]
    with pytest.raises(ewsg.errors.InputError, match="holds results of 'first'"):
        Folder(tmp_path, "second")


def test_stored_parts_are_used_whatever_the_code(tmp_path, monkeypatch):
    Folder(tmp_path, "first").part("a", {"seed": 0}, lambda: 1)
    monkeypatch.setattr(folder, "_code", lambda: "other")
    stored = Folder(tmp_path, "first", stored=True)
    assert stored.part("a", {"seed": 0}, lambda: 2) == 1
    with pytest.raises(ewsg.errors.InputError, match="lacks the part 'a': run the experiment without --redraw"):
        stored.part("a", {"seed": 1}, lambda: 2)
    assert Folder(tmp_path, "first").part("a", {"seed": 0}, lambda: 2) == 2
    assert Folder(tmp_path, "first", stored=True).part("a", {"seed": 0}, lambda: 3) == 2


def test_results_name_the_versions_that_made_them(tmp_path, monkeypatch):
    def versions(number):
        monkeypatch.setattr(folder, "_versions", lambda: dict.fromkeys(folder._PACKAGES, number))

    def said():
        return json.loads((tmp_path / "results.json").read_text())["versions"]["jax"]

    versions("1")
    first = Folder(tmp_path, "first")
    first.part("a", {}, lambda: 1)
    first.arrays("b", {}, lambda: {"values": [1]})
    first.finish({})
    assert said() == "1"
    versions("2")
    stored = Folder(tmp_path, "first", stored=True)
    stored.part("a", {}, lambda: 1)
    stored.finish({})
    assert said() == "1"
    new = Folder(tmp_path, "first")
    new.part("a", {}, lambda: 1)
    new.finish({})
    assert said() == "2"
    new.arrays("b", {})
    new.finish({})
    assert said() == "1 and 2"


def test_another_experiments_folder_is_refused_before_anything_is_written(tmp_path):
    Folder(tmp_path, "first").finish({"answer": 42})
    with pytest.raises(ewsg.errors.InputError, match="holds results of 'first'"):
        Folder(tmp_path, "second")
    results = json.loads((tmp_path / "results.json").read_text())
    assert results["experiment"] == "first"
    assert results["answer"] == 42
    assert set(results["versions"]) >= {"jax", "ewsg"}


@pytest.mark.parametrize("content", ["thesis.tex", "results.json"])
def test_other_files_are_left_alone(tmp_path, content):
    (tmp_path / content).write_text("{}")
    with pytest.raises(ewsg.errors.InputError, match="holds other files"):
        Folder(tmp_path, "first")


def test_a_file_or_a_missing_parent_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(ewsg.errors.InputError, match="is a file"):
        Folder(tmp_path / "file", "first")
    with pytest.raises(ewsg.errors.InputError, match="create it first"):
        Folder(tmp_path / "a" / "b", "first")


def test_parts_of_other_code_are_computed_again(tmp_path, monkeypatch):
    assert Folder(tmp_path, "first").part("a", {}, lambda: 1) == 1
    monkeypatch.setattr(folder, "_code", lambda: "another")
    assert Folder(tmp_path, "first").part("a", {}, lambda: 2) == 2
    monkeypatch.undo()
    assert Folder(tmp_path, "first").part("a", {}, lambda: 3) == 1


def test_the_code_is_known_by_names_and_contents(tmp_path, monkeypatch):
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    monkeypatch.setattr(folder, "__file__", str(package / "lab" / "folder.py"))
    seen = set()
    for name, text in (("a.py", "1"), ("a.py", "2"), ("inner/a.py", "2"), ("note.txt", "3")):
        (package / name).write_text(text)
        seen.add(folder._code.__wrapped__())
    assert len(seen) == 3  # the note is not code


@pytest.mark.parametrize("there", [False, True])
def test_a_folder_that_cannot_be_written_is_refused(tmp_path, monkeypatch, there):
    def refuse(**_):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(folder.tempfile, "TemporaryFile", refuse)
    out = tmp_path / "out"
    if there:
        out.mkdir()
    with pytest.raises(ewsg.errors.InputError, match=r"cannot write to .*out: Read-only file system; give another"):
        Folder(out, "first")
    with pytest.raises(ewsg.errors.InputError, match="Read-only file system"):
        experiments.reproduce_all("smoke", out)


def test_looking_leaves_nothing_behind(tmp_path):
    Folder(tmp_path / "out", "first")
    assert not (tmp_path / "out").exists()


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs Linux")
def test_the_demo_is_refused_before_it_works(monkeypatch):
    monkeypatch.setattr(demo, "problem", lambda: pytest.fail("began to work"))
    with pytest.raises(ewsg.errors.InputError, match="cannot write to /proc/x"):
        demo.main("/proc/x")
