"""Data sets: the real ones, where they are, and a small one like the large ones."""

import io
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from ewsg import datasets

REPOSITORY = Path(__file__).resolve().parents[2]
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


REAL_DATA = Path(os.environ["EWSG_DATA"])  # set by conftest.py where the user has not
needs_data = pytest.mark.needs_data


class NoNetwork:
    """In the place of `pooch.HTTPDownloader`: fails as `requests` does without a network."""

    def __init__(self, **settings):
        self.settings = settings

    def __call__(self, url, output_file, pooch):
        raise ConnectionError(f"HTTPSConnectionPool: max retries exceeded with url {url}, " + "because " * 20)


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
