import importlib.metadata
import platform
from pathlib import Path

import pytest

from ewsg import datasets
from ewsg.cli import canary, doctor, worlds


@pytest.fixture(autouse=True)
def quick_canary(monkeypatch):
    monkeypatch.setattr(canary, "mismatch", lambda: 0.0)


def find(report, name):
    (found,) = [check for check in report.checks if check.name == name]
    return found


def pretend_version(monkeypatch, package, version):
    real = importlib.metadata.version

    def fake(name):
        if name != package:
            return real(name)
        if version is None:
            raise importlib.metadata.PackageNotFoundError(name)
        return version

    monkeypatch.setattr(importlib.metadata, "version", fake)


def test_this_installation_is_fit():
    report = doctor.check()
    assert report.ok
    assert find(report, "jax").detail.startswith(importlib.metadata.version("jax"))
    for name in ("world", "ewsg", "devices", "x64", "canary", "$EWSG_DATA", "data cache"):
        assert find(report, name).status == "ok"
    for name in ("python", *doctor.PACKAGES):
        assert find(report, name).status in ("ok", "warn")


def test_it_says_which_world_this_is(monkeypatch):
    for world, versions in worlds.WORLDS.items():
        exact = {package: f"{version}.7" for package, version in versions.items()}
        monkeypatch.setattr(platform, "python_version", lambda exact=exact: exact["python"])
        monkeypatch.setattr(importlib.metadata, "version", lambda name, exact=exact: exact.get(name, "1.0"))
        report = doctor.check()
        assert find(report, "world").detail == (
            f"{world} (python {exact['python']}, jax {exact['jax']}, jaxlib {exact['jaxlib']}, "
            f"numpy {exact['numpy']}, arviz {exact['arviz']})"
        )
        assert all(find(report, name).status == "ok" for name in ("python", *doctor.PACKAGES))


def test_a_mixture_is_no_world(monkeypatch):
    assert worlds.name(worlds.WORLDS["newest"] | {"python": "3.12"}) == "newest"
    assert worlds.name(worlds.WORLDS["newest"] | {"arviz": "0.23"}) is None
    pretend_version(monkeypatch, "numpy", "2.1.0")
    report = doctor.check()
    assert find(report, "world").detail.startswith("none that is tested as a whole (python 3.")
    assert find(report, "numpy") == doctor.Check("numpy", "ok", "2.1.0 (tested: 2.0 to 2.5)")


@pytest.mark.parametrize("package", ["jax", "jaxlib"])
def test_the_miscompiling_release_fails_and_says_what_to_install(monkeypatch, package):
    pretend_version(monkeypatch, package, "0.10.2")
    report = doctor.check()
    assert not report.ok
    assert find(report, package).status == "fail"
    assert "jax!=0.10.2" in find(report, package).remedy


@pytest.mark.parametrize(
    ("package", "version", "status", "remedy"),
    [
        ("jax", "0.13.0", "warn", "newer than any tested: if something is odd, try jax 0.12"),
        ("jax", "0.12.9", "ok", ""),
        ("arviz", "2.0.0rc1", "warn", "newer than any tested: if something is odd, try arviz 1.3"),
        ("arviz", "1.0", "ok", ""),
        ("numpy", "1.26.4", "warn", "older than any tested: install numpy 2.0 or newer"),
        ("numpy", "2", "ok", ""),
    ],
)
def test_versions_beyond_the_tested_ones_are_a_warning(monkeypatch, package, version, status, remedy):
    pretend_version(monkeypatch, package, version)
    report = doctor.check()
    assert (find(report, package).status, find(report, package).remedy) == (status, remedy)
    assert report.ok


def test_a_newer_python_is_a_warning(monkeypatch):
    monkeypatch.setattr(platform, "python_version", lambda: "3.14.0")
    monkeypatch.setattr(platform, "platform", lambda: "Windows-11")
    python = find(doctor.check(), "python")
    assert (python.status, python.detail) == ("warn", "3.14.0, Windows-11 (tested: 3.11 to 3.13)")


def test_a_missing_package_fails(monkeypatch):
    pretend_version(monkeypatch, "equinox", None)
    report = doctor.check()
    assert not report.ok
    assert find(report, "equinox").remedy == "pip install equinox"


def test_a_missing_extra_is_a_warning(monkeypatch):
    pretend_version(monkeypatch, "blackjax", None)
    report = doctor.check()
    assert report.ok
    assert "pip install 'ewsg[nuts]'" in find(report, "blackjax").remedy


@pytest.mark.parametrize(("share", "status"), [(0.0, "ok"), (1e-4, "ok"), (2e-3, "fail"), (0.5, "fail")])
def test_the_canary_decides(monkeypatch, share, status):
    monkeypatch.setattr(canary, "mismatch", lambda: share)
    report = doctor.check()
    assert find(report, "canary").status == status
    assert report.ok == (status == "ok")


def test_a_broken_jax_is_reported_not_raised(monkeypatch):
    def broken():
        raise RuntimeError("no backend")

    monkeypatch.setattr(canary, "mismatch", broken)
    report = doctor.check()
    assert find(report, "canary").detail == "RuntimeError: no backend"
    assert not report.ok


def test_data_is_shown_with_its_place_and_missing_data_is_only_a_warning(monkeypatch, tmp_path):
    monkeypatch.setenv("EWSG_DATA", str(tmp_path))
    monkeypatch.setattr(datasets, "locations", lambda: {"here": Path("/some/folder"), "gone": None})
    report = doctor.check()
    assert find(report, "$EWSG_DATA").detail == str(tmp_path)
    assert find(report, "data: here") == doctor.Check("data: here", "ok", "/some/folder")
    assert find(report, "data: gone").status == "warn"
    assert report.ok


def test_a_wrong_data_folder_fails(monkeypatch, tmp_path):
    monkeypatch.setenv("EWSG_DATA", str(tmp_path / "mistyped"))
    report = doctor.check()
    assert find(report, "$EWSG_DATA").status == "fail"
    assert not report.ok


def test_rendering_shares_a_remedy_and_ends_with_the_verdict(capsys):
    doctor.render(
        doctor.Report(
            [
                doctor.Check("[jax]", "ok", "1.0"),
                doctor.Check("a", "warn", "missing", "fetch it"),
                doctor.Check("b", "warn", "missing", "fetch it"),
                doctor.Check("canary", "fail", "wrong", "another jax"),
            ]
        )
    )
    assert capsys.readouterr().out.splitlines() == [
        "ok    [jax]   1.0",
        "warn  a       missing",
        "warn  b       missing",
        "              -> fetch it",
        "fail  canary  wrong",
        "              -> another jax",
        "unfit to sample with: canary",
    ]
