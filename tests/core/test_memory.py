"""How much memory there is, in containers too."""

import os

import pytest

from ewsg._core import memory
from ewsg.errors import InputError


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


@pytest.fixture
def machine(tmp_path, monkeypatch):
    """A machine with 1000 kB available, whose control groups a test may fill in."""
    monkeypatch.setattr(memory, "_MEMINFO", write(tmp_path / "meminfo", "MemTotal: 9 kB\nMemAvailable:   1000 kB\n"))
    monkeypatch.setattr(memory, "_CGROUP_OF_PROCESS", write(tmp_path / "groups", "0::/\n"))
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path / "cgroup")
    return tmp_path


def test_available_memory_is_the_tighter_of_machine_and_container(machine):
    assert memory.available_bytes() == 1000 * 1024
    write(machine / "cgroup" / "memory.max", "max\n")
    assert memory.available_bytes() == 1000 * 1024
    write(machine / "cgroup" / "memory.max", "500000\n")
    write(machine / "cgroup" / "memory.current", "300000\n")
    assert memory.available_bytes() == 200000
    write(machine / "cgroup" / "memory.stat", "anon 1\ninactive_file 50000\n")  # the kernel gives this back
    assert memory.available_bytes() == 250000


def test_limits_of_outer_groups_and_of_version_1_count(machine):
    write(machine / "groups", "4:cpu,memory:/job/step\n0::/job\n")
    write(machine / "cgroup" / "memory" / "job" / "memory.limit_in_bytes", "700000\n")
    write(machine / "cgroup" / "memory" / "job" / "memory.usage_in_bytes", "100000\n")
    write(machine / "cgroup" / "memory" / "job" / "step" / "memory.limit_in_bytes", f"{2**63 - 4096}\n")
    assert memory.available_bytes() == 600000


def test_unknown_memory_is_no_limit(machine, monkeypatch):
    (machine / "meminfo").unlink()
    if hasattr(os, "sysconf"):
        assert memory.available_bytes() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.delattr(os, "sysconf", raising=False)  # as on Windows
    assert memory.available_bytes() is None
    memory.check(2**80, "data", "use less")


def test_more_than_is_available_is_refused(machine):
    memory.check(800 * 1024, "data", "use fewer rows")
    with pytest.raises(InputError, match=r"^data needs .* GiB and .* is available: use fewer rows$"):
        memory.check(801 * 1024, "data", "use fewer rows")
