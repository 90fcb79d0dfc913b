"""Is this installation fit to sample with? Versions, devices, compiler and data, each a named check."""

import importlib.metadata
import itertools
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import ewsg

from . import worlds

PACKAGES = ("jax", "jaxlib", "equinox", "arviz", "blackjax", "numpy", "scikit-learn")
EXTRAS = {"arviz": "arviz", "blackjax": "nuts", "scikit-learn": "cluster"}
"""Optional packages, and the extra of `ewsg` that installs each."""
TOLERATED_MISMATCH = 1e-3
ANOTHER_JAX = "pip install 'jax!=0.10.2' 'jaxlib!=0.10.2'"


@dataclass(frozen=True)
class Check:
    """One finding, with a remedy unless all is well."""

    name: str
    status: Literal["ok", "warn", "fail"]
    detail: str
    remedy: str = ""


@dataclass(frozen=True)
class Report:
    """All findings, in the order they are shown."""

    checks: list[Check]

    @property
    def ok(self) -> bool:
        """Whether no check failed; warnings are allowed."""
        return all(check.status != "fail" for check in self.checks)


def check() -> Report:
    """Run every check. It takes a few seconds, nearly all of them in the canary."""
    checks = [_world(), _python(), Check("ewsg", "ok", ewsg.__version__)]
    checks += [_package(name) for name in PACKAGES]
    for name, probe in {"devices": _devices, "canary": _canary, "data": _data}.items():
        try:
            checks += probe()
        except Exception as error:  # a broken installation can fail in any way, and finding that is the purpose
            remedy = "install ewsg in a fresh environment, and unset JAX_PLATFORMS"
            checks += [Check(name, "fail", f"{type(error).__name__}: {error}", remedy)]
    return Report(checks)


def _world() -> Check:
    """The tested set of versions installed here, if any; later checks compare each version with the tested range."""
    packages = [name for name in worlds.WORLDS["default"] if name != "python"]
    versions = {"python": platform.python_version()} | {name: _version(name) or "missing" for name in packages}
    shown = ", ".join(f"{name} {version}" for name, version in versions.items())
    return Check("world", "ok", f"{worlds.name(versions) or 'none that is tested as a whole'} ({shown})")


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def _python() -> Check:
    return _followed("python", platform.python_version(), platform.platform())


def _package(name: str) -> Check:
    version = _version(name)
    if version is None and name in EXTRAS:
        return Check(name, "warn", "not installed", f"only some features need it: pip install 'ewsg[{EXTRAS[name]}]'")
    if version is None:
        return Check(name, "fail", "not installed", f"pip install {name}")
    if version in worlds.EXCLUDED.get(name, ()):
        return Check(name, "fail", f"{version} silently miscompiles chains on the CPU", ANOTHER_JAX)
    return _followed(name, version)


def _followed(name: str, version: str, more: str = "") -> Check:
    """Is a version within the range that is tested?"""
    detail = ", ".join(filter(None, (version, more)))
    if (bounds := worlds.tested(name)) is None:
        return Check(name, "ok", detail)
    oldest, newest = bounds
    detail = f"{detail} (tested: {oldest} to {newest})"
    if worlds.release(version) > worlds.release(newest):
        return Check(name, "warn", detail, f"newer than any tested: if something is odd, try {name} {newest}")
    if worlds.release(version) < worlds.release(oldest):
        return Check(name, "warn", detail, f"older than any tested: install {name} {oldest} or newer")
    return Check(name, "ok", detail)


def _devices() -> Iterator[Check]:
    import jax

    devices = ", ".join(str(device) for device in jax.devices())
    yield Check("devices", "ok", f"{devices} (default backend: {jax.default_backend()})")
    x64 = jax.config.read("jax_enable_x64")
    yield Check("x64", "ok", "on: float64 arrays stay float64" if x64 else "off: everything is float32")


def _canary() -> Iterator[Check]:
    from . import canary

    share = canary.mismatch()
    if share > TOLERATED_MISMATCH:
        detail = f"{share:.1%} of compiled chains are WRONG: do not trust any result of this installation"
        yield Check("canary", "fail", detail, ANOTHER_JAX)
    else:
        yield Check("canary", "ok", "compiled and eager chains agree")


def _data() -> Iterator[Check]:
    from .. import datasets

    *given, cache = datasets.search_path()
    if not given:
        yield Check("$EWSG_DATA", "ok", "not set")
    elif given[0].is_dir():
        yield Check("$EWSG_DATA", "ok", str(given[0]))
    else:
        yield Check("$EWSG_DATA", "fail", f"{given[0]} is not a folder", "correct EWSG_DATA, or unset it")
    yield Check("data cache", "ok", str(cache))
    for name, path in datasets.locations().items():
        if path is None:
            remedy = "copy it to a folder named above, or fetch it with ewsg.datasets.load(name)"
            yield Check(f"data: {name}", "warn", "not found", remedy)
        else:
            yield Check(f"data: {name}", "ok", str(path))


def render(report: Report) -> None:
    """Print the report for a person, one line per check; checks in a row with the same remedy share it."""
    from rich.console import Console
    from rich.text import Text

    console = Console(soft_wrap=True)
    colours = {"ok": "green", "warn": "yellow", "fail": "bold red"}
    width = max(len(check.name) for check in report.checks) + 2
    for remedy, group in itertools.groupby(report.checks, key=lambda check: check.remedy):
        for check in group:
            status = (f"{check.status:6}", colours[check.status])
            console.print(Text.assemble(status, f"{check.name:{width}}", check.detail))
        if remedy:
            console.print(Text(" " * (6 + width) + "-> " + remedy))
    failed = [check.name for check in report.checks if check.status == "fail"]
    console.print(Text(f"unfit to sample with: {', '.join(failed)}" if failed else "fit to sample with"))
