"""A forked process is refused."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ewsg
from ewsg._core import process
from ewsg.errors import InputError


def test_a_forked_process_is_told_to_spawn(monkeypatch):
    monkeypatch.setattr(process, "_owner", None)
    process.check()
    process.mark()
    process.check()
    monkeypatch.setattr(process, "_owner", os.getpid() + 1)  # as a child sees its parent's mark
    process.mark()
    with pytest.raises(InputError, match="spawn"):
        process.check()


_FORK = """
import os, sys
import numpy as np, ewsg

def target():
    return ewsg.Target(lambda theta, x: -0.5 * (theta - x) ** 2, None, np.arange(3.0))

target()  # marks this process
child = os.fork()
if child == 0:
    try:
        target()
    except ewsg.errors.InputError as error:
        os.write(1, str(error).encode())
    finally:
        os._exit(0)
os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")
def test_fork_after_use_is_refused_in_the_child():
    """In a process of its own: a child of this one would go on with the other tests if anything failed."""
    here = {"PYTHONPATH": str(Path(ewsg.__file__).parents[1])}
    command = [sys.executable, "-W", "ignore", "-c", _FORK]
    done = subprocess.run(command, env=os.environ | here, capture_output=True, text=True, check=True, timeout=120)
    assert "spawn" in done.stdout
