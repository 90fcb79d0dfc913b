"""Downloads: only what was published reaches the cache, and what is missing is one sentence."""

import functools
import gzip
import http.server
import re
import sys
import threading

import numpy as np
import pooch
import pytest
from toy_data import CONTENT, REAL_DATA, REGRESSION, assert_is_toy, files_below, needs_data, put, zip_archive

from ewsg import datasets
from ewsg.datasets.registry import DATASETS
from ewsg.errors import DataNotFound, InputError

REAL_DOWNLOADER = pooch.HTTPDownloader


def test_without_a_network_one_sentence_says_which_file_to_put_where(toy, cache):
    with pytest.raises(DataNotFound) as caught:
        datasets.load("toy")
    assert str(caught.value) == (
        f"the data set 'toy' needs the file '{cache / 'data' / 'toy' / 'toy.txt.gz'}', "
        "and its download from https://first.example/toy.zip failed (ConnectionError): "
        "put the toy table there, gzipped or not"
    )
    assert isinstance(caught.value, InputError)
    assert isinstance(caught.value, FileNotFoundError)
    assert files_below(cache) == []


def test_the_sentence_prefers_the_users_own_folder(toy, tmp_path, monkeypatch):
    (tmp_path / "mine").mkdir()
    monkeypatch.setenv("EWSG_DATA", str(tmp_path / "mine"))
    with pytest.raises(DataNotFound, match=re.escape(str(tmp_path / "mine" / "toy" / "toy.txt.gz"))):
        datasets.load("toy")


@pytest.mark.parametrize("name", ["pima", *REGRESSION])
def test_a_set_without_a_publisher_says_what_to_look_for(cache, web, name):
    with pytest.raises(DataNotFound, match=r"no publisher offers it for download: put .* GitHub repository"):
        datasets.load(name)


def test_downloads_can_be_forbidden(toy, web):
    web["https://first.example/toy.zip"] = zip_archive("toy.txt.gz", gzip.compress(CONTENT))
    with pytest.raises(DataNotFound, match="downloads were not allowed"):
        datasets.load("toy", download=False)


@pytest.mark.parametrize(
    "published",
    [
        zip_archive("toy.txt.gz", gzip.compress(CONTENT)),
        zip_archive("toy.txt.gz", CONTENT),
        gzip.compress(CONTENT),
        CONTENT,
    ],
    ids=["zipped-gzip", "zipped", "gzip", "plain"],
)
def test_a_download_is_put_into_our_layout(toy, cache, web, published):
    web["https://first.example/toy.zip"] = published
    assert_is_toy(datasets.load("toy"))
    assert gzip.decompress((cache / "data" / "toy" / "toy.txt.gz").read_bytes()) == CONTENT
    web.clear()
    assert_is_toy(datasets.load("toy"))


@pytest.mark.parametrize(
    "published",
    [
        b"<html>moved</html>",
        gzip.compress(b"7 8 9\n"),
        gzip.compress(CONTENT)[:-9],
        zip_archive("toy.txt.gz", gzip.compress(b"7 8 9\n")),
        zip_archive("renamed.txt.gz", gzip.compress(CONTENT)),
        zip_archive("toy.txt.gz", gzip.compress(CONTENT))[:60],
    ],
    ids=["page", "wrong", "truncated", "wrong-in-zip", "no-member", "truncated-zip"],
)
def test_a_wrong_download_does_not_reach_the_cache(toy, cache, web, published):
    web["https://first.example/toy.zip"] = published
    with pytest.raises(DataNotFound, match=r"download from .* failed"):
        datasets.load("toy")
    assert files_below(cache) == []
    web["https://second.example/toy.txt"] = CONTENT
    assert_is_toy(datasets.load("toy"))


def test_a_download_is_used_even_if_it_cannot_be_kept(toy, cache, web):
    cache.write_text("a file where the folder should be")
    web["https://first.example/toy.zip"] = gzip.compress(CONTENT)
    assert_is_toy(datasets.load("toy"))


def test_a_missing_downloader_is_named(toy, monkeypatch):
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(DataNotFound, match="the package pooch is not installed"):
        datasets.load("toy")


@pytest.mark.parametrize("is_there", [True, False])
def test_the_real_downloader_works(toy, cache, tmp_path, monkeypatch, is_there):
    """`pooch` itself, with a web server on this machine."""

    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    monkeypatch.setenv("NO_PROXY", "*")
    monkeypatch.setattr(pooch, "HTTPDownloader", REAL_DOWNLOADER)
    (tmp_path / "web").mkdir()
    if is_there:
        put(tmp_path / "web", "toy.zip", zip_archive("toy.txt.gz", gzip.compress(CONTENT)))
    handler = functools.partial(Handler, directory=str(tmp_path / "web"))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        file = toy._replace(urls=(f"http://127.0.0.1:{server.server_port}/toy.zip",))
        monkeypatch.setitem(DATASETS, "toy", DATASETS["toy"]._replace(splits={None: (file,)}))
        try:
            if is_there:
                assert_is_toy(datasets.load("toy"))
            else:
                with pytest.raises(DataNotFound, match="HTTPError: 404"):
                    datasets.load("toy")
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("name", "split"),
    [
        pytest.param("a9a", "test", marks=needs_data("a9a")),
        pytest.param("mnist", "test", marks=needs_data("mnist")),
        pytest.param("parkinsons", None, marks=needs_data("parkinsons")),
    ],
)
def test_what_publishers_give_is_accepted(cache, web, real, name, split):
    for file in DATASETS[name].splits[split]:
        stored = (REAL_DATA / file.path).read_bytes()
        if name == "a9a":
            stored = gzip.decompress(stored)  # LIBSVM's are not compressed
        web[file.urls[0]] = zip_archive(file.member, stored) if file.urls[0].endswith(".zip") else stored
    table = datasets.load(name, split)
    np.testing.assert_array_equal(table.features, real(name, split).features)
    assert all((cache / "data" / file.path).is_file() for file in DATASETS[name].splits[split])
