"""The worlds in which tests run and the site is built: the interpreter of each, and the version of every package in it.

    python tools/worlds.py python newest    where the world's interpreter is
    python tools/worlds.py pin oldest       resolve the world again and write its constraints file

`oldest` has every direct dependency at its lower bound in pyproject.toml; `default` and `newest` have what pip chooses
under Python 3.11 and under the newest Python; `docs` has the packages of `default`, and Sphinx.
"""

import itertools
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = {
    "default": ROOT / "constraints.txt",
    "oldest": ROOT / "constraints-oldest.txt",
    "newest": ROOT / "constraints-newest.txt",
    "docs": ROOT / "constraints-docs.txt",
}
PYTHONS = {
    "default": ("python3.11", "python3"),
    "oldest": ("python3.11", "python3"),
    "newest": ("python3.13", "python3.12", "python3.14"),
    "docs": ("python3.11", "python3"),
}
HELD = (
    "fastprogress<1.1",  # newer ones require a web server
    "pyparsing<3.3",  # with newer ones, old releases of Matplotlib warn on import: an error in the tests
)
"""Requirements that old releases do not declare, for the oldest world."""


def interpreter(world: str) -> str | None:
    """The first interpreter of a world that runs; None if the machine has none."""
    return next((path for name in PYTHONS[world] for path in _places(name) if _runs(path)), None)


def _places(name: str) -> Iterator[str]:
    """Where an interpreter may be: on the path, or among pyenv's, whose entry on the path may be a dead shim."""
    if found := shutil.which(name):
        yield found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    yield from (str(path) for path in sorted(versions.glob(f"*/bin/{name}"), reverse=True))


def _runs(path: str) -> bool:
    newer = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))"
    try:
        return subprocess.run([path, "-c", newer], capture_output=True, timeout=60).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def lower_bounds() -> list[str]:
    """Every direct dependency, of the extras too, pinned to the oldest version that pyproject.toml allows."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = [needs for extra, needs in project["optional-dependencies"].items() if extra != "torch"]  # in no world
    wanted = dict.fromkeys(itertools.chain(project["dependencies"], *extras))
    bounds = [re.match(r"([\w-]+)(?:\[\w+\])?>=([\d.]+)", requirement) for requirement in wanted]
    return [f"{bound[1]}=={bound[2]}" for bound in bounds if bound]  # `ewsg[...]` among the extras has none


def extra(world: str) -> str:
    """The extra of pyproject.toml that a world installs."""
    return "docs" if world == "docs" else "dev"


def resolve(world: str, python: str) -> list[str]:
    """The packages that pip would install, without installing them."""
    limits = [*lower_bounds(), *HELD] if world == "oldest" else []
    if world == "docs":
        limits = FILES["default"].read_text(encoding="utf-8").splitlines()
    with tempfile.TemporaryDirectory() as scratch:
        constraints, report = Path(scratch) / "limits.txt", Path(scratch) / "report.json"
        constraints.write_text("\n".join(limits))
        options = ["--quiet", "--dry-run", "--ignore-installed", "--constraint", str(constraints)]
        subprocess.run(
            [python, "-m", "pip", "install", *options, "--report", str(report), f"{ROOT}[{extra(world)}]"],
            check=True,
            cwd=scratch,
        )
        found = [entry["metadata"] for entry in json.loads(report.read_text())["install"]]
    pins = [f"{package['name']}=={package['version']}" for package in found if package["name"] != "ewsg"]
    return sorted(pins, key=str.lower)


def pin(world: str) -> None:
    """Write the constraints file of a world."""
    python = _found(world)
    version = subprocess.run([python, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    header = f"# The {world} world: `pip install '.[{extra(world)}]'` under {version}. Refreshed by `make constraints`."
    FILES[world].write_text("\n".join([header, *resolve(world, python)]) + "\n", encoding="utf-8")


def _found(world: str) -> str:
    if (python := interpreter(world)) is None:
        raise SystemExit(f"no interpreter for the {world} world: none of {', '.join(PYTHONS[world])} runs here")
    return python


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["python", world] if world in FILES:
            print(_found(world))
        case ["pin", world] if world in FILES:
            pin(world)
        case _:
            raise SystemExit(__doc__)
