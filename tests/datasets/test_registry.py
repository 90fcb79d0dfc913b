"""The data sets: the values that were published, and a clear sentence for everything that can be missing."""

import functools
import gzip
import hashlib
import http.server
import io
import os
import re
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import platformdirs
import pooch
import pytest

from ewsg import datasets
from ewsg.datasets.parsing import parse_regression
from ewsg.datasets.registry import DATASETS, Entry, File
from ewsg.errors import DataNotFound, InputError, UnknownOption

REPOSITORY = Path(__file__).resolve().parents[2]
REAL_DOWNLOADER = pooch.HTTPDownloader
CONTENT = b"1.5 2 30\n4 -5 6e1\n"
REGRESSION = {  # name: rows, features, mean of the target
    "concrete": (1030, 8, 35.818),
    "energy": (768, 8, 22.307),
    "naval": (11934, 16, 0.975),
    "power": (9568, 4, 454.365),
    "protein": (45730, 9, 7.749),
    "wine": (1599, 11, 5.636),
    "yacht": (308, 6, 10.495),
}


# ---------------------------------------------------------------- surroundings


REAL_DATA = Path(os.environ["EWSG_DATA"])  # set by conftest.py where the user has not
needs_data = pytest.mark.needs_data


def each(names):
    """Parameters that are skipped where the data set of that name is absent; Covertype takes seconds to parse."""
    slow = {"covertype": [pytest.mark.slow]}
    return [pytest.param(name, marks=[needs_data(name), *slow.get(name, [])]) for name in names]


class NoNetwork:
    """In the place of `pooch.HTTPDownloader`: fails as `requests` does without a network."""

    def __init__(self, **settings):
        self.settings = settings

    def __call__(self, url, output_file, pooch):
        raise ConnectionError(f"HTTPSConnectionPool: max retries exceeded with url {url}, " + "because " * 20)


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


def put(folder: Path, path: str, stored: bytes) -> Path:
    destination = folder / path
    destination.parent.mkdir(parents=True, exist_ok=True)
    destination.write_bytes(stored)
    return destination


def zip_archive(name: str, stored: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, stored)
    return stream.getvalue()


def files_below(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def assert_is_toy(table: datasets.Table) -> None:
    np.testing.assert_array_equal(table.features, np.array([[1.5, 2], [4, -5]], np.float32))
    np.testing.assert_array_equal(table.labels, np.array([30, 60], np.float32))
    assert table.features.dtype == table.labels.dtype == np.float32


# ---------------------------------------------------------------- published values


@needs_data("mnist")
@pytest.mark.parametrize(
    ("split", "counts"),
    [
        ("train", [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949]),
        ("test", [980, 1135, 1032, 1010, 982, 892, 958, 1028, 974, 1009]),
    ],
)
def test_mnist_has_the_published_digits(real, split, counts):
    table = real("mnist", split)
    assert table.features.shape == (sum(counts), 784)
    assert table.features.min() == 0.0
    assert table.features.max() == 1.0
    assert np.bincount(table.labels).tolist() == counts
    assert table.split == split


@needs_data("mnist")
def test_mnist_pixels_have_the_usual_mean_and_sd(real):
    pixels = real("mnist", "train").features
    assert pixels.mean(dtype=np.float64) == pytest.approx(0.1307, abs=5e-5)
    assert pixels.std(dtype=np.float64) == pytest.approx(0.3081, abs=5e-5)


@needs_data("a9a")
def test_a_published_split_defaults_to_the_training_rows(real):
    assert real("a9a").split == "train"
    np.testing.assert_array_equal(real("a9a").features, real("a9a", "train").features)


@pytest.mark.slow
@needs_data("covertype")
def test_covertype_has_the_published_classes_and_indicators(real):
    table = real("covertype")
    assert table.features.shape == (581012, 54)
    assert np.bincount(table.labels)[1:].tolist() == [211840, 283301, 35754, 2747, 9493, 17367, 20510]
    assert (table.features[:, 10:14].sum(axis=1) == 1).all()
    assert (table.features[:, 14:].sum(axis=1) == 1).all()
    first = dict(zip(table.feature_names, table.features[0], strict=True))
    assert (first["Elevation"], first["Horizontal_Distance_To_Fire_Points"], first["Soil_Type29"]) == (
        2596,
        6279,
        1,
    )


@pytest.mark.slow
@needs_data("covertype")
def test_covertype_comes_back_the_same_from_its_binary_copy(real, shared_cache, monkeypatch):
    first = real("covertype")
    (kept,) = (shared_cache / "parsed").glob("covertype-*.npz")
    monkeypatch.setenv("EWSG_DATA", str(REAL_DATA))
    monkeypatch.setattr(platformdirs, "user_cache_dir", lambda *_: str(shared_cache))
    monkeypatch.setitem(DATASETS, "covertype", DATASETS["covertype"]._replace(parse=None))
    again = datasets.load("covertype")
    assert kept.is_file()
    np.testing.assert_array_equal(again.features, first.features)
    np.testing.assert_array_equal(again.labels, first.labels)
    assert again.features.dtype == np.float32
    assert again.labels.dtype == np.int32


@needs_data("pima")
def test_pima_has_the_published_outcomes_and_means(real):
    table = real("pima")
    assert table.features.shape == (768, 8)
    assert np.bincount(table.labels).tolist() == [500, 268]
    means = dict(zip(table.feature_names, table.features.mean(axis=0, dtype=np.float64), strict=True))
    assert means["pregnancies"] == pytest.approx(3.8, abs=0.06)  # from the description file of the data set
    assert means["glucose"] == pytest.approx(120.9, abs=0.06)
    assert means["age"] == pytest.approx(33.2, abs=0.06)


@needs_data("parkinsons")
def test_parkinsons_has_its_subjects_as_groups(real):
    table = real("parkinsons")
    assert table.features.shape == (195, 22)
    assert np.bincount(table.labels).tolist() == [48, 147]
    assert len(np.unique(table.groups)) == 32
    assert table.groups[0] == "phon_R01_S01"
    status_of = {subject: set(table.labels[table.groups == subject]) for subject in table.groups}
    assert all(len(statuses) == 1 for statuses in status_of.values())


@needs_data("parkinsons")
def test_parkinsons_names_are_those_of_the_header(real):
    header = (REAL_DATA / "parkinsons" / "parkinsons.data").read_text().splitlines()[0].split(",")
    assert header == [
        "name",
        *real("parkinsons").feature_names[:16],
        "status",
        *real("parkinsons").feature_names[16:],
    ]
    first = dict(zip(real("parkinsons").feature_names, real("parkinsons").features[0], strict=True))
    assert first["HNR"] == np.float32(21.033)
    assert first["RPDE"] == np.float32(0.414783)


@needs_data("a9a")
@pytest.mark.parametrize(
    ("split", "counts", "non_zeros"), [("train", [24720, 7841], 451592), ("test", [12435, 3846], None)]
)
def test_a9a_has_the_published_labels_and_non_zeros(real, split, counts, non_zeros):
    table = real("a9a", split)
    assert table.features.shape == (sum(counts), 123)
    assert np.bincount(table.labels).tolist() == counts
    assert set(np.unique(table.features)) == {0.0, 1.0}
    if non_zeros is not None:
        assert np.count_nonzero(table.features) == non_zeros


@needs_data("a9a")
def test_a9a_has_its_first_row(real):
    indices = np.flatnonzero(real("a9a").features[0]) + 1
    assert indices.tolist() == [3, 11, 14, 19, 39, 42, 55, 64, 67, 73, 75, 76, 80, 83]


@pytest.mark.parametrize("name", each(REGRESSION))
def test_regression_sets_have_the_published_shapes_and_targets(real, name):
    num_rows, num_features, mean = REGRESSION[name]
    table = real(name)
    assert table.features.shape == (num_rows, num_features)
    assert table.labels.mean(dtype=np.float64) == pytest.approx(mean, abs=6e-4)
    assert np.isfinite(table.features).all()


@pytest.mark.parametrize("name", each(datasets.names()))
def test_every_table_is_typed_and_named_and_credited(real, name):
    table = real(name)
    assert table.features.dtype == np.float32
    assert table.features.flags.c_contiguous
    assert table.labels.dtype == (np.float32 if name in REGRESSION else np.int32)
    assert len(table.labels) == len(table.features)
    assert len(set(table.feature_names)) == table.features.shape[1]
    assert re.search("CC|Copyright", table.source)
    assert (table.groups is None) == (name != "parkinsons")
    assert len(repr(table)) < 400


@needs_data
def test_every_data_set_is_located(cache, monkeypatch):
    monkeypatch.setenv("EWSG_DATA", str(REAL_DATA))
    assert all(path is not None and path.is_file() for path in datasets.locations().values())
    assert datasets.search_path() == [REAL_DATA.absolute(), cache / "data"]


def test_the_shipped_files_are_the_published_ones():
    shipped = REPOSITORY / "tests" / "data"
    lines = (shipped / "SHA256SUMS").read_text().splitlines()
    assert len(lines) == 3
    for digest, path in map(str.split, lines):
        assert hashlib.sha256((shipped / path).read_bytes()).hexdigest() == digest


def test_the_shipped_sets_are_always_found():
    shipped = REPOSITORY / "tests" / "data"
    for name in ("pima", "parkinsons", "wine"):
        assert all((shipped / file.path).is_file() for file in DATASETS[name].splits[None])


# ---------------------------------------------------------------- names and splits


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


# ---------------------------------------------------------------- folders


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


# ---------------------------------------------------------------- wrong files


def test_a_wrong_checksum_names_the_file_and_both_digests(toy, cache):
    path = put(cache / "data", toy.path, gzip.compress(b"7 8 9\n"))
    with pytest.raises(InputError) as caught:
        datasets.load("toy")
    message = str(caught.value)
    assert str(path) in message
    assert toy.sha256 in message
    assert hashlib.sha256(b"7 8 9\n").hexdigest() in message
    assert not isinstance(caught.value, DataNotFound)


@pytest.mark.parametrize("keep", [3, 15, -9])
def test_a_truncated_file_is_named(toy, cache, keep):
    path = put(cache / "data", toy.path, gzip.compress(CONTENT)[:keep])
    with pytest.raises(InputError, match=re.escape(str(path)) + ".*damaged or cut short"):
        datasets.load("toy")


def test_a_file_that_cannot_be_read_is_named(toy, cache, monkeypatch):
    path = put(cache / "data", toy.path, gzip.compress(CONTENT))

    def refuse(self):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_bytes", refuse)
    with pytest.raises(InputError, match=re.escape(repr(str(path))) + " cannot be read: Permission denied"):
        datasets.load("toy")


# ---------------------------------------------------------------- the binary copy


def parsed_file(cache: Path) -> Path:
    (path,) = files_below(cache / "parsed")
    return path


def count_parsing(monkeypatch) -> list:
    calls = []
    entry = DATASETS["toy"]

    def parse(content):
        calls.append(content)
        return entry.parse(content)

    monkeypatch.setitem(DATASETS, "toy", entry._replace(parse=parse))
    return calls


def flip_a_bit_in_the_middle(stored: bytes) -> bytes:
    middle = stored.index(np.float64(1.5).tobytes())
    return stored[:middle] + bytes([stored[middle] ^ 1]) + stored[middle + 1 :]


def test_the_second_load_does_not_parse(toy, cache, monkeypatch):
    put(cache / "data", toy.path, gzip.compress(CONTENT))
    calls = count_parsing(monkeypatch)
    assert_is_toy(datasets.load("toy"))
    assert_is_toy(datasets.load("toy"))
    assert len(calls) == 1


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda stored: b"",
        lambda stored: b"not an archive",
        lambda stored: stored[: len(stored) // 2],
        flip_a_bit_in_the_middle,
        lambda stored: zip_archive("other.npy", b"x"),
    ],
    ids=["empty", "garbage", "half", "bit", "other"],
)
def test_a_corrupt_copy_is_rebuilt(toy, cache, monkeypatch, corrupt):
    put(cache / "data", toy.path, gzip.compress(CONTENT))
    datasets.load("toy")
    path = parsed_file(cache)
    intact = path.read_bytes()
    path.write_bytes(corrupt(intact))
    calls = count_parsing(monkeypatch)
    assert_is_toy(datasets.load("toy"))
    assert len(calls) == 1
    assert_is_toy(datasets.load("toy"))
    assert len(calls) == 1
    assert parsed_file(cache) == path


def test_a_changed_file_is_verified_in_spite_of_the_copy(toy, cache):
    path = put(cache / "data", toy.path, gzip.compress(CONTENT))
    datasets.load("toy")
    path.write_bytes(gzip.compress(b"7 8 9\n"))
    with pytest.raises(InputError, match="not the published one"):
        datasets.load("toy")


def test_a_cache_that_cannot_be_written_is_no_error(toy, cache, tmp_path, monkeypatch):
    cache.write_text("a file where the folder should be")
    monkeypatch.setenv("EWSG_DATA", str(tmp_path / "mine"))
    put(tmp_path / "mine", toy.path, gzip.compress(CONTENT))
    assert_is_toy(datasets.load("toy"))
    assert_is_toy(datasets.load("toy"))


def test_an_interrupted_write_leaves_nothing(toy, cache, monkeypatch):
    path = put(cache / "data", toy.path, gzip.compress(CONTENT))

    def full_disk(stream, **arrays):
        stream.write(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np, "savez", full_disk)
    assert_is_toy(datasets.load("toy"))
    assert files_below(cache) == [path]


# ---------------------------------------------------------------- downloads


def test_without_a_network_one_sentence_says_which_file_to_put_where(toy, cache):
    with pytest.raises(DataNotFound) as caught:
        datasets.load("toy")
    assert str(caught.value) == (
        f"the data set 'toy' needs the file '{cache / 'data' / 'toy' / 'toy.txt.gz'}', "
        "and its download from https://first.example/toy.zip failed (ConnectionError): "
        "put there the toy table, compressed by gzip or not"
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
    with pytest.raises(DataNotFound, match=r"no publisher offers it for download: put there .* GitHub repository"):
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


# ---------------------------------------------------------------- preparation


def test_standardized_columns_have_mean_0_and_sd_1():
    features = np.random.default_rng(0).normal(1e3, [[1.0, 20.0, 0.1]], (500, 3)).astype(np.float32)
    standardized, mean, sd = datasets.standardize(features)
    assert standardized.dtype == mean.dtype == sd.dtype == np.float32
    np.testing.assert_allclose(standardized.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(standardized.std(axis=0), 1, atol=1e-5)
    np.testing.assert_allclose(mean, features.mean(axis=0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(sd, features.std(axis=0, dtype=np.float64), rtol=1e-5)


def test_a_constant_column_becomes_zero():
    features = np.column_stack([np.full(7, 0.998), np.arange(7)]).astype(np.float32)
    standardized, mean, sd = datasets.standardize(features)
    assert (standardized[:, 0] == 0).all()
    assert (mean[0], sd[0]) == (np.float32(0.998), 1)


@pytest.mark.parametrize("columns", [[0, 2], range(0, 3, 2), slice(0, 3, 2), np.array([True, False, True])])
def test_only_the_chosen_columns_are_standardized(columns):
    features = np.array([[1.0, 5.0, 1.0], [3.0, 7.0, 2.0]])
    before = features.copy()
    standardized, mean, sd = datasets.standardize(features, columns)
    np.testing.assert_allclose(standardized, [[-1, 5, -1], [1, 7, 1]])
    np.testing.assert_allclose((features - mean) / sd, standardized)
    np.testing.assert_array_equal(features, before)


def test_integers_are_standardized_to_floats():
    assert datasets.standardize(np.array([[1], [2]]))[0].dtype == np.float32


@pytest.mark.parametrize("features", [np.zeros(3), np.zeros((0, 2))])
def test_what_is_not_a_table_cannot_be_standardized(features):
    with pytest.raises(InputError, match=r"shape \(n, d\)"):
        datasets.standardize(features)


def test_a_split_is_a_partition_that_the_seed_decides():
    train, test = datasets.train_test_split(101, 0.8, seed=3)
    assert (len(train), len(test)) == (81, 20)
    assert sorted([*train, *test]) == list(range(101))
    again, _ = datasets.train_test_split(101, 0.8, seed=3)
    other, _ = datasets.train_test_split(101, 0.8, seed=4)
    np.testing.assert_array_equal(train, again)
    assert not np.array_equal(train, other)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, 1.5, 0.01])
def test_a_split_needs_rows_on_both_sides(fraction):
    with pytest.raises(InputError, match="leaves no row"):
        datasets.train_test_split(10, fraction, seed=0)
