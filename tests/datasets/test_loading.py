"""Names and splits of data sets, and the folders in which they are looked for."""

import gzip
import subprocess
import sys

import pytest
from toy_data import CONTENT, REPOSITORY, assert_is_toy, files_below, put

from ewsg import datasets
from ewsg.errors import DataNotFound, InputError, UnknownOption


def test_an_unknown_name_is_answered_with_the_nearest_and_the_known(cache):
    with pytest.raises(InputError, match=r"'covtyp'; did you mean 'covertype'\? \(known: .*yacht\)"):
        datasets.load("covtyp")


def test_a_split_that_nobody_published_is_refused(cache):
    with pytest.raises(InputError, match=r"'pima' has no published split.*train_test_split"):
        datasets.load("pima", split="train")


def test_an_unknown_split_is_refused(cache):
    with pytest.raises(UnknownOption, match="did you mean 'train'"):
        datasets.load("mnist", split="training")


def test_importing_is_light():
    script = (
        "import sys, types; package = types.ModuleType('ewsg'); package.__path__ = [sys.argv[1]];"
        "sys.modules['ewsg'] = package; import ewsg.datasets;"
        "sys.exit(str({'jax', 'pandas', 'pooch', 'sklearn'} & set(sys.modules) or ''))"
    )
    done = subprocess.run([sys.executable, "-c", script, str(REPOSITORY / "ewsg")], capture_output=True, text=True)
    assert done.stderr.strip() == ""


def test_the_cache_is_the_only_place_without_the_variable(cache):
    assert datasets.search_path() == [cache / "data"]


def test_an_empty_variable_counts_as_unset(cache, monkeypatch):
    monkeypatch.setenv("EWSG_DATA", "")
    assert datasets.search_path() == [cache / "data"]


def test_the_variable_comes_before_the_cache(toy, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("EWSG_DATA", str(tmp_path / "mine"))
    in_cache = put(cache / "data", toy.path, gzip.compress(CONTENT))
    (tmp_path / "mine").mkdir()
    assert datasets.locations()["toy"] == in_cache
    assert_is_toy(datasets.load("toy"))
    mine = put(tmp_path / "mine", toy.path, gzip.compress(CONTENT))
    assert datasets.locations()["toy"] == mine


def test_nothing_is_written_beside_the_users_data(toy, cache, tmp_path, monkeypatch):
    monkeypatch.setenv("EWSG_DATA", str(tmp_path / "mine"))
    mine = put(tmp_path / "mine", toy.path, gzip.compress(CONTENT))
    datasets.load("toy")
    assert files_below(tmp_path / "mine") == [mine]


def test_a_variable_that_names_no_folder_is_an_error(toy, cache, tmp_path, monkeypatch):
    put(cache / "data", toy.path, gzip.compress(CONTENT))
    monkeypatch.setenv("EWSG_DATA", str(tmp_path / "nowhere"))
    with pytest.raises(DataNotFound, match=r"EWSG_DATA names '.*nowhere', which is not a folder: correct it") as caught:
        datasets.load("toy")
    assert isinstance(caught.value, FileNotFoundError)
    assert datasets.search_path()[0] == tmp_path / "nowhere"


def test_nothing_is_located_in_an_empty_cache(cache):
    assert set(datasets.locations().values()) == {None}


@pytest.mark.parametrize("stored", [CONTENT, gzip.compress(CONTENT, mtime=0)], ids=["plain", "gzip"])
@pytest.mark.parametrize("path", ["toy/toy.txt", "toy/toy.txt.gz"])
def test_a_file_may_be_compressed_or_not(toy, cache, path, stored):
    put(cache / "data", path, stored)
    assert_is_toy(datasets.load("toy"))
