"""A missing package is one sentence with the line that installs it."""

import importlib.util
import sys

import pytest

from ewsg import cli
from ewsg._core.optional import require
from ewsg.errors import InputError, MissingPackage


def test_a_module_that_is_there_is_imported():
    assert require("scipy.special", extra="lab").ndtri(0.5) == 0


@pytest.mark.parametrize("module", ["nowhere_to_be_found", "nowhere_to_be_found.inside"])
def test_a_missing_package_is_one_sentence(module):
    sentence = "this needs the package nowhere_to_be_found, which is not installed: pip install 'ewsg[lab]'"
    with pytest.raises(InputError) as caught:
        require(module, extra="lab")
    assert str(caught.value) == sentence
    assert isinstance(caught.value, MissingPackage)
    assert isinstance(caught.value, ImportError)


def test_packages_go_by_the_name_that_pip_knows(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn.cluster", None)
    with pytest.raises(MissingPackage, match=r"package scikit-learn,.*pip install 'ewsg\[cluster\]'"):
        require("sklearn.cluster", extra="cluster")


def test_a_package_that_is_broken_keeps_its_own_error(monkeypatch, tmp_path):
    (tmp_path / "broken_package.py").write_text("import nowhere_to_be_found\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere_to_be_found'") as caught:
        require("broken_package", extra="lab")
    assert not isinstance(caught.value, MissingPackage)


def test_the_command_without_its_packages_says_how_to_get_them(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit, match="2"):
        cli.main()
    expected = "ewsg: this needs the package typer, which is not installed: pip install 'ewsg[lab]'\n"
    assert capsys.readouterr() == ("", expected)


def test_submodules_of_a_proxy_are_loaded_once(monkeypatch, tmp_path):
    """ArviZ 1 leaves a lazy proxy of NumPyro: importing a submodule would load the package, and then it once more."""
    folder = tmp_path / "lazily_loaded" / "part"
    folder.mkdir(parents=True)
    (folder.parent / "__init__.py").write_text("from lazily_loaded.part import inner\n__version__ = '1'\n")
    (folder / "__init__.py").write_text("from lazily_loaded.part.inner import NUMBER\n")
    (folder / "inner.py").write_text("NUMBER = 3\n")
    monkeypatch.syspath_prepend(tmp_path)
    spec = importlib.util.find_spec("lazily_loaded")
    spec.loader = importlib.util.LazyLoader(spec.loader)
    proxy = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "lazily_loaded", proxy)
    spec.loader.exec_module(proxy)
    assert require("lazily_loaded.part", extra="lab").inner.NUMBER == 3  # the attribute of a package that was made once
    for name in ("part", "part.inner"):
        monkeypatch.delitem(sys.modules, f"lazily_loaded.{name}")
