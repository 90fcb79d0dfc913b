"""The folder an experiment writes to: it belongs to that experiment alone, and remembers which parts are done."""

import contextlib
import functools
import hashlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np

from .._core import atomic
from ..errors import InputError

RESULTS = "results.json"
_PARTS, _ARRAYS = "parts.jsonl", "arrays"
_PACKAGES = ("ewsg", "jax", "jaxlib", "numpy")


class Folder:
    """A folder that belongs to one experiment.

    Parts are appended to a file as they are finished; `part` returns a finished one without computing it again, so
    that an interrupted experiment continues where it stopped. A part belongs to the settings under which it was made.

    Args:
        path: created if it does not exist; raises InputError, before anything is computed, if it holds something else
            or cannot be written to.
        experiment: whose results these are.
        stored: whether nothing is computed: finished parts are used whatever the code and versions that made them, and
            a part that is missing raises InputError.
    """

    def __init__(self, path: str | os.PathLike, experiment: str, stored: bool = False):
        self.path = Path(path)
        self.experiment = experiment
        self.stored = stored
        self._made_with: dict[str, set[str]] = {name: set() for name in _PACKAGES}
        self._check()
        self._parts = self._read_parts()

    def part(self, name: str, settings: Mapping[str, Any], compute: Callable[[], Any]) -> Any:
        """The result of `compute` (anything JSON can hold), computed once for these settings, versions and code."""
        key = json.dumps([name, dict(settings), *([] if self.stored else [_versions(), _code()])], sort_keys=True)
        if key not in self._parts and self.stored:
            raise InputError(f"{self.path} lacks the part {name!r}: run the experiment without --redraw first")
        if key not in self._parts:
            value = json.loads(json.dumps(compute()))
            self.path.mkdir(parents=True, exist_ok=True)
            with open(self.path / _PARTS, "a", encoding="utf-8") as file:
                file.write("\n" + json.dumps({"experiment": self.experiment, "key": key, "value": value}))
            self._parts[key] = value
        return self._parts[key]

    def arrays(
        self, name: str, settings: Mapping[str, Any], compute: Callable[[], Mapping[str, Any]] | None = None
    ) -> dict[str, np.ndarray] | None:
        """The arrays of `compute`, computed once for these settings and kept in a file of their own.

        They cost hours, so a change of code does not throw them away: the file says which code and versions made it,
        and whoever doubts it deletes the file. Several processes can fill one folder.

        Args:
            name: of the file, with a hash of the settings.
            settings: whose arrays these are.
            compute: None for the stored arrays alone, None if there are none.
        """
        asked = json.dumps([name, dict(settings)], sort_keys=True)
        words = "".join(letter if letter.isalnum() else " " for letter in name).split()
        file = f"{'-'.join(words)}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}.npz"
        path = self.path / _ARRAYS / file
        if not path.is_file():
            if compute is None:
                return None
            about = {"experiment": self.experiment, "key": asked, "versions": _versions(), "code": _code()}
            found: dict[str, Any] = {key: np.asarray(value) for key, value in compute().items()}
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic.write(path, lambda to: np.savez_compressed(to, about=json.dumps(about), **found))
        with np.load(path) as stored:
            self._note(json.loads(str(stored["about"]))["versions"])
            return {key: stored[key] for key in stored.files if key != "about"}

    def finish(self, results: Mapping[str, Any]) -> None:
        """Writes results.json, with the experiment's name and the versions that made its parts, atomically."""
        self.path.mkdir(parents=True, exist_ok=True)
        if not self.stored:
            self._note(_versions())
        versions = {name: " and ".join(sorted(found)) for name, found in self._made_with.items()}
        everything = {"experiment": self.experiment, **results, "versions": versions}
        text = json.dumps(everything, indent=1).encode()
        atomic.write(self.path / RESULTS, lambda file: file.write(text))

    def _note(self, versions: Mapping[str, str]) -> None:
        for name, number in versions.items():
            self._made_with[name].add(number)

    def _check(self) -> None:
        check_writable(self.path)
        if self.path.is_dir() and any(self.path.iterdir()):
            owners = {self._owner(RESULTS), self._owner(_PARTS), *self._owners_of_arrays()} - {None}
            if owners != {self.experiment}:
                whose = f"results of {owners.pop()!r}" if owners else "other files"
                raise InputError(f"the folder {self.path} holds {whose}: give an empty or new one with --out")

    def _owner(self, name: str) -> str | None:
        """Whose results a file of the folder holds, if it holds any."""
        try:
            text = (self.path / name).read_text(encoding="utf-8")
            return str(json.loads(text.split("\n")[1] if name == _PARTS else text)["experiment"])
        except (OSError, ValueError, LookupError, TypeError):
            return None

    def _owners_of_arrays(self) -> set[str]:
        found = set()
        for path in (self.path / _ARRAYS).glob("*.npz"):
            with contextlib.suppress(OSError, ValueError, LookupError), np.load(path) as stored:
                found.add(str(json.loads(str(stored["about"]))["experiment"]))
        return found

    def _read_parts(self) -> dict[str, Any]:
        """Finished parts; a line cut short by a crash is left out."""
        parts = {}
        try:
            lines = (self.path / _PARTS).read_text(encoding="utf-8").splitlines()
        except OSError:
            return parts
        for line in lines:
            try:
                part = json.loads(line)
            except ValueError:
                continue
            key = part["key"]
            if self.stored:
                *asked, versions, _ = json.loads(key)
                key = json.dumps(asked, sort_keys=True)
                self._note(versions)
            parts[key] = part["value"]
        return parts


def holds_parts(path: Path) -> bool:
    """Whether a folder has finished parts of an experiment."""
    return (path / _PARTS).is_file() or (path / _ARRAYS).is_dir()


def check_writable(path: Path) -> None:
    """Raise InputError if a folder cannot be created or written to; nothing is left behind."""
    parent = path.absolute().parent
    if path.exists() and not path.is_dir():
        raise InputError(f"{path} is a file: give a folder with --out")
    if not path.exists() and not parent.is_dir():
        raise InputError(f"cannot make {path}: the folder {parent} does not exist; create it first")
    new = not path.exists()
    try:
        path.mkdir(exist_ok=True)
        try:
            tempfile.TemporaryFile(dir=path).close()
        finally:
            if new:
                path.rmdir()
    except OSError as error:
        raise InputError(f"cannot write to {path}: {error.strerror}; give another folder with --out") from error


@functools.cache
def _code() -> str:
    """A hash of the package's source files, so that results of other code are not reused."""
    package = Path(__file__).parents[1]
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        found.update(path.relative_to(package).as_posix().encode() + b"\0" + path.read_bytes() + b"\0")
    return found.hexdigest()[:16]


def _versions() -> dict[str, str]:
    return {name: version(name) for name in _PACKAGES}
