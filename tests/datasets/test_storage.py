"""Wrong files are named; the binary copy is verified, rebuilt, and never half written."""

import gzip
import hashlib
import re
from pathlib import Path

import numpy as np
import pytest
from toy_data import CONTENT, assert_is_toy, files_below, put, zip_archive

from ewsg import datasets
from ewsg.datasets.registry import DATASETS
from ewsg.errors import DataNotFound, InputError


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
