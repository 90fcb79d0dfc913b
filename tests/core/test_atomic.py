"""Files are written whole or not at all: under kill -9, a full disk, two writers, links and odd paths."""

import contextlib
import dataclasses
import json
import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import ewsg
from ewsg._core import atomic
from ewsg.errors import InputError, SaveError
from ewsg.lab.folder import Folder
from ewsg.result import RunCost

posix = pytest.mark.skipif(os.name != "posix", reason="needs forks, limits, pipes or permissions as POSIX has them")

KILLER = """
import dataclasses, json, os, random, signal, sys, time
import numpy as np
import ewsg.result.storage

path, kills = sys.argv[1], int(sys.argv[2])
run = ewsg.result.storage.load(path)
runs = [dataclasses.replace(run, draws=np.full((2, 500_000), k, np.float32)) for k in range(2)]
runs[0].save(path)
random.seed(0)
found = []
for _ in range(kills):
    child = os.fork()
    if child == 0:
        k = 0
        while True:
            runs[k].save(path)
            k = 1 - k
    time.sleep(random.uniform(0.001, 0.04))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    strays = len(os.listdir(os.path.dirname(path))) - 1
    found.append([np.unique(ewsg.result.storage.load(path).draws).tolist(), strays])
runs[1].save(path)
print(json.dumps({"found": found, "left": os.listdir(os.path.dirname(path))}))
"""


@pytest.fixture(scope="module")
def run():
    """A run made by hand: nothing is compiled."""
    part = {"component": "Uniform"}
    settings = {"estimator": part, "integrator": None, "collect": part, "temperature": 1.0}
    position = {"position": np.zeros(2)}
    return ewsg.Run(np.zeros((2, 3)), {}, np.array(["ok", "ok"]), RunCost(), settings, fingerprint=position)


def filled(run, value):
    """The same run with draws that are all `value`, large enough to be written in several pieces."""
    return dataclasses.replace(run, draws=np.full((2, 100_000), value, np.float32))


def the_value(path):
    (value,) = np.unique(ewsg.load(path).draws)
    return value


@posix
def test_kill_leaves_the_old_run_or_the_new_and_the_next_save_sweeps(run, tmp_path):
    """Seen before: every kill in the middle of a save left a hidden file for ever."""
    path = tmp_path / "run.npz"
    run.save(path)
    command = [sys.executable, "-W", "ignore", "-c", KILLER, str(path), "20"]
    folder = str(Path(ewsg.__file__).parents[1])
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=folder, check=False)
    assert done.returncode == 0, done.stderr
    result = json.loads(done.stdout)
    assert len(result["found"]) == 20
    assert all(values in ([0.0], [1.0]) for values, _ in result["found"])
    assert any(strays for _, strays in result["found"])
    assert all(strays <= 1 for _, strays in result["found"])  # a save sweeps what the killed one before it left
    assert result["left"] == ["run.npz"]
    assert the_value(path) == 1


@posix
def test_a_save_renames(run, tmp_path):
    """Who has the old file open goes on reading the old bytes: nothing is copied over them."""
    path = tmp_path / "run.npz"
    filled(run, 1).save(path)
    before, inode = path.read_bytes(), path.stat().st_ino
    with open(path, "rb") as file:
        file.read(100)
        filled(run, 2).save(path)
        assert before[100:] == file.read()
        assert os.fstat(file.fileno()).st_ino == inode != path.stat().st_ino
    assert the_value(path) == 2


@posix
def test_readers_and_writers_at_once_see_whole_files(run, tmp_path):
    path = tmp_path / "run.npz"
    filled(run, 0).save(path)
    failures, done = [], threading.Event()

    def attempt(action):
        try:
            action()
        except Exception as error:
            failures.append(error)

    def read():
        while not done.is_set():
            assert the_value(path) in (0, 1, 2)

    def write(value):
        for _ in range(15):
            filled(run, value).save(path)

    writers = [threading.Thread(target=attempt, args=(lambda value=value: write(value),)) for value in (1, 2)]
    reader = threading.Thread(target=attempt, args=(read,))
    for thread in (reader, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    done.set()
    reader.join()
    assert not failures
    assert the_value(path) in (1, 2)
    assert os.listdir(tmp_path) == ["run.npz"]


@posix
def test_the_file_of_a_live_writer_is_not_swept(tmp_path):
    path = tmp_path / "file"

    def fill(file):
        file.write(b"outer")
        atomic.write(path, lambda inner: inner.write(b"inner"))
        assert path.read_bytes() == b"inner"
        assert len(os.listdir(tmp_path)) == 2

    atomic.write(path, fill)
    assert path.read_bytes() == b"outer"
    assert os.listdir(tmp_path) == ["file"]


@contextlib.contextmanager
def small_disk():
    """No file can grow beyond 10 kB."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@posix
def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(run, tmp_path):
    """Seen before: a raw OSError."""
    path = tmp_path / "run.npz"
    filled(run, 1).save(path)
    with small_disk(), pytest.raises(SaveError, match=r"cannot write .*run\.npz: File too large") as caught:
        filled(run, 2).save(path)
    assert "\n" not in str(caught.value)
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value.__cause__, OSError)
    assert the_value(path) == 1
    assert os.listdir(tmp_path) == ["run.npz"]


@pytest.mark.parametrize("interruption", [KeyboardInterrupt, MemoryError])
def test_an_interrupted_write_leaves_the_old_file(tmp_path, interruption):
    path = tmp_path / "file"
    path.write_bytes(b"old")

    def fill(file):
        file.write(b"half")
        raise interruption

    with pytest.raises(interruption):
        atomic.write(path, fill)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["file"]


@posix
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o027, 0o640), (0o077, 0o600)])
def test_new_files_have_the_permissions_that_open_gives(run, tmp_path, umask, mode):
    """Seen before: 0600 whatever the umask."""
    before = os.umask(umask)
    try:
        run.save(tmp_path / "run.npz")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "run.npz").stat().st_mode) == mode


@posix
def test_results_of_an_experiment_have_the_permissions_that_open_gives(tmp_path):
    """Seen before: 0644 whatever the umask."""
    before = os.umask(0o027)
    try:
        Folder(tmp_path / "out", "name").finish({"value": 1})
    finally:
        os.umask(before)
    path = tmp_path / "out" / "results.json"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert json.loads(path.read_text())["value"] == 1
    assert os.listdir(path.parent) == ["results.json"]


@posix
@pytest.mark.parametrize("mode", [0o600, 0o664])
def test_replaced_files_keep_their_permissions(run, tmp_path, mode):
    path = tmp_path / "run.npz"
    path.touch()
    path.chmod(mode)
    run.save(path)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix
@pytest.mark.parametrize("existing", [True, False])
def test_a_link_stays_a_link(run, tmp_path, existing):
    """Seen before: the link became a file, and its target stayed old."""
    (tmp_path / "real").mkdir()
    target, link = tmp_path / "real" / "run.npz", tmp_path / "link.npz"
    if existing:
        filled(run, 1).save(target)
    link.symlink_to(target)
    filled(run, 2).save(link)
    assert link.is_symlink()
    assert not target.is_symlink()
    assert the_value(target) == the_value(link) == 2
    assert sorted(os.listdir(tmp_path)) == ["link.npz", "real"]
    assert os.listdir(target.parent) == ["run.npz"]


@posix
def test_long_names(run, tmp_path):
    """Seen before: the name of the temporary file was too long where that of the file was not."""
    path = tmp_path / ("x" * 251 + ".npz")
    run.save(path)
    assert os.listdir(tmp_path) == [path.name]
    np.testing.assert_array_equal(ewsg.load(path).draws, run.draws)


def odd_paths(folder):
    """What cannot be written, and a part of the sentence."""
    os.mkfifo(folder / "pipe")
    (folder / "loop").symlink_to(folder / "loop")
    (folder / "lost").symlink_to(folder / "missing" / "run.npz")
    (folder / "to null").symlink_to("/dev/null")
    (folder / "file").touch()
    server = socket.socket(socket.AF_UNIX)
    server.bind("socket")  # in the present folder: such a name has at most 104 bytes on macOS
    server.close()
    return {
        "give the name of a file": [None, 3, b"x", "", object()],
        "is a folder": [folder, str(folder) + "/", "/"],
        "not a regular file": ["/dev/null", folder / "pipe", folder / "socket", folder / "to null"],
        "does not exist": [folder / "missing" / "run.npz", folder / "file" / "run.npz", folder / "lost"],
        "File name too long": [folder / ("x" * 300)],
        "symbolic links": [folder / "loop"],
        "null": [str(folder) + "/a\0b"],
    }


@posix
def test_odd_paths_are_one_sentence(run, tmp_path, monkeypatch):
    """Seen before: a device was replaced by a file, and None, 3 and long names were raw tracebacks."""
    monkeypatch.chdir(tmp_path)
    for sentence, paths in odd_paths(tmp_path).items():
        for path in paths:
            for action in (ewsg.result.storage.check_writable, run.save):
                with pytest.raises(InputError, match=sentence) as caught:
                    action(path)
                assert "\n" not in str(caught.value)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)


@posix
@pytest.mark.parametrize("path", [None, 3, b"x", "", ".", "/dev/null", "x" * 300, "a\0b", "missing/run.npz"], ids=str)
def test_odd_paths_to_read_are_one_sentence(path):
    with pytest.raises(InputError, match="no saved run at"):
        ewsg.load(path)
