"""The data sets have the values that were published."""

import hashlib
import re

import numpy as np
import platformdirs
import pytest
from toy_data import REAL_DATA, REGRESSION, REPOSITORY, needs_data

from ewsg import datasets
from ewsg.datasets.registry import DATASETS


def each(names):
    """Parameters that are skipped where the data set of that name is absent; Covertype takes seconds to parse."""
    slow = {"covertype": [pytest.mark.slow]}
    return [pytest.param(name, marks=[needs_data(name), *slow.get(name, [])]) for name in names]


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
