import importlib.metadata
from pathlib import Path

import pytest

from ewsg import canary, datasets, doctor


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
    assert find(report, "jax").detail == importlib.metadata.version("jax")
    for name in ("python", "ewsg", *doctor.PACKAGES, "devices", "x64", "canary", "$EWSG_DATA", "data cache"):
        assert find(report, name).status == "ok"


def test_the_miscompiling_jaxlib_fails_and_says_what_to_install(monkeypatch):
    pretend_version(monkeypatch, "jaxlib", "0.10.2")
    report = doctor.check()
    assert not report.ok
    assert find(report, "jaxlib").status == "fail"
    assert "jax!=0.10.2" in find(report, "jaxlib").remedy


def test_a_missing_package_fails(monkeypatch):
    pretend_version(monkeypatch, "blackjax", None)
    report = doctor.check()
    assert not report.ok
    assert find(report, "blackjax").remedy == "pip install blackjax"


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
