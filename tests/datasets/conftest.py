"""The real data sets, a small one in their place, and a web without a network."""

import functools
import hashlib
from pathlib import Path

import platformdirs
import pooch
import pytest
from toy_data import CONTENT, REAL_DATA, NoNetwork

from ewsg import datasets
from ewsg.datasets.parsing import parse_regression
from ewsg.datasets.registry import DATASETS, Entry, File


@pytest.fixture(scope="module")
def shared_cache(tmp_path_factory):
    return tmp_path_factory.mktemp("shared-cache")


@pytest.fixture(scope="module")
def real(shared_cache):
    """`load` from the real data folder, with one cache for the module and each table read once."""

    @functools.cache
    def load(name, split=None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("EWSG_DATA", str(REAL_DATA))
            patch.setattr(platformdirs, "user_cache_dir", lambda *_: str(shared_cache))
            return datasets.load(name, split, download=False)

    return load


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, no $EWSG_DATA and no network."""
    monkeypatch.delenv("EWSG_DATA", raising=False)
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_: str(tmp_path / "cache"))
    monkeypatch.setattr(pooch, "HTTPDownloader", NoNetwork)
    return tmp_path / "cache"


@pytest.fixture
def toy(cache, monkeypatch):
    """A small data set like the large ones: compressed, published in a zip archive, slow to parse."""
    file = File(
        "toy/toy.txt.gz",
        hashlib.sha256(CONTENT).hexdigest(),
        "the toy table",
        ("https://first.example/toy.zip", "https://second.example/toy.txt"),
        member="toy.txt.gz",
    )
    entry = Entry(
        splits={None: (file,)},
        parse=functools.partial(parse_regression, num_columns=3, target=2),
        feature_names=("a", "b"),
        source="nobody",
        is_slow=True,
    )
    monkeypatch.setitem(DATASETS, "toy", entry)
    return file


@pytest.fixture
def web(monkeypatch):
    """What `pooch` finds, by address; an address that is not there cannot be reached."""
    contents = {}

    class Downloader(NoNetwork):
        def __call__(self, url, output_file, pooch):
            if url not in contents:
                super().__call__(url, output_file, pooch)
            Path(output_file).write_bytes(contents[url])

    monkeypatch.setattr(pooch, "HTTPDownloader", Downloader)
    return contents
