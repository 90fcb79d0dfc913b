"""From files to tables: every format alike, kinds of columns, missing values, columns left out."""

import numpy as np
import polars as pl
import pytest

from ewsg import files
from ewsg.errors import InputError


def encoded(path, outcome="died", **options):
    table = files.read(path, outcome, **options)
    return table, *table.encoding.data(table.source, table.rows, table.encoding.complete())


def test_every_format_gives_the_same_table(patients, write, tmp_path):
    numbers = patients.select("age", "year", "cost", "visits")
    expected = encoded(write("p.csv", numbers), "cost")
    np.savez(tmp_path / "p.npz", **{name: numbers[name].to_numpy() for name in numbers.columns})
    others = [write(f"p{suffix}", numbers) for suffix in (".tsv", ".parquet", ".feather")]
    for path in (*others, tmp_path / "p.npz"):
        table, features, outcomes = encoded(path, "cost")
        assert table.encoding == expected[0].encoding, path
        np.testing.assert_array_equal(features, expected[1])
        np.testing.assert_array_equal(outcomes, expected[2])
    exact = numbers.select("age", "year", "visits").to_numpy()
    np.testing.assert_allclose(expected[1][:, 1:], (exact - exact.mean(0)) / exact.std(0, ddof=1), atol=1e-5)
    y = numbers["cost"].to_numpy()
    np.testing.assert_allclose(expected[2], (y - y.mean()) / y.std(ddof=1), atol=1e-5)


def test_text_and_booleans_too(patients, write):
    expected = encoded(write("p.csv", patients))
    assert expected[0].encoding.kinds == {
        **dict.fromkeys(("age", "year", "cost", "visits"), "number"),
        **dict.fromkeys(("colour", "grade", "died"), "category"),
        "smoker": "boolean",
    }
    for suffix in (".tsv", ".parquet", ".feather"):
        table, features, outcomes = encoded(write(f"p{suffix}", patients))
        assert table.encoding == expected[0].encoding
        np.testing.assert_array_equal(features, expected[1])
        np.testing.assert_array_equal(outcomes, patients["died"] == "yes")


def test_libsvm(write):
    path = write("a.libsvm", "1 1:0.5 3:2\n-1 2:1.5\n1 1:1 2:3 3:-1\n-1 3:4\n")
    table, features, outcomes = encoded(path, "label")
    x = np.array([[0.5, 0, 2], [0, 1.5, 0], [1, 3, -1], [0, 0, 4]])
    assert [feature.name for feature in table.encoding.features] == ["x1", "x2", "x3"]
    np.testing.assert_allclose(features[:, 1:], (x - x.mean(0)) / x.std(0, ddof=1), atol=1e-5)
    np.testing.assert_array_equal(outcomes, [1, 0, 1, 0])


def test_arrays_of_two_axes_in_npz(tmp_path):
    rng = np.random.default_rng(0)
    np.savez(tmp_path / "a.npz", x=rng.normal(size=(9, 2)), y=rng.normal(size=9), z=np.array(["a", "b", "a"] * 3))
    table = files.read(tmp_path / "a.npz", "y")
    assert [feature.name for feature in table.encoding.features] == ["x[0]", "x[1]", "z[b]"]
    np.savez(tmp_path / "b.npz", x=np.zeros(3), y=np.zeros(4))
    with pytest.raises(InputError, match="arrays of 3 and of 4 rows"):
        files.read(tmp_path / "b.npz", "y")
    np.savez(tmp_path / "c.npz", x=np.array([None, 1]), y=np.zeros(2))
    with pytest.raises(InputError, match="cannot be read as NPZ"):
        files.read(tmp_path / "c.npz", "y")


def test_levels_are_against_the_most_frequent_one_and_dates_are_days(write):
    text = "when,colour,y\n2020-01-01,red,1.5\n2020-01-03,red,2\n2020-01-02,blue,0\n2020-01-06,green,1\n"
    text += "2020-01-03,blue,7\n" + "2020-01-03,red,3\n" * 3
    table, features, _ = encoded(write("a.csv", text), "y")
    assert [feature.name for feature in table.encoding.features] == ["when", "colour[blue]", "colour[green]"]
    assert table.encoding.references == {"colour": "red"}
    days = features[:, 1] * table.encoding.features[0].scale + table.encoding.features[0].centre
    np.testing.assert_allclose(days[:5] - 18262, [0, 2, 1, 5, 2], atol=1e-2)
    np.testing.assert_allclose(features[:, 2] + 0.25, [0, 0, 1, 0, 1, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(features[:, 3] + 0.125, [0, 0, 0, 1, 0, 0, 0, 0], atol=1e-6)


GAPS = "a,b,colour,y\n1,2,red,0.5\n,3,blue,1\n3,NA,red,2.5\n4,5,,3\n6,7,blue,4\n5,1,red,\n2,9,blue,0\n"


def test_rows_with_missing_values_are_left_out_and_counted(write):
    table, features, outcomes = encoded(write("a.csv", GAPS), "y")
    assert table.rows == len(features) == 3
    assert (
        "left out",
        "4 of 7 rows, for want of a in 1, b in 1, colour in 1, y in 1: drop a column, or use --missing indicator",
    ) in table.notes
    scale, centre = table.encoding.outcome.scale, table.encoding.outcome.centre
    np.testing.assert_allclose(outcomes * scale + centre, [0.5, 4, 0], atol=1e-12)
    a = np.array([1.0, 6, 2])
    np.testing.assert_allclose(features[:, 1], (a - 3) / a.std(ddof=1), atol=1e-5)


def test_missing_values_filled_in_and_marked(write):
    table, features, _ = encoded(write("a.csv", GAPS), "y", missing="indicator")
    names = [feature.name for feature in table.encoding.features]
    assert names == ["a", "a[missing]", "b", "b[missing]", "colour[red]", "colour[missing]"]
    assert table.rows == 6
    a = table.encoding.features[0]
    np.testing.assert_allclose(features[:, 1] * a.scale + a.centre, [1, 3, 3, 4, 6, 2], atol=1e-6)  # the median is 3
    np.testing.assert_allclose(features[:, 2] + 1 / 6, [0, 1, 0, 0, 0, 0], atol=1e-6)
    np.testing.assert_allclose(features[:, 6] + 1 / 6, [0, 0, 0, 1, 0, 0], atol=1e-6)
    assert [text for subject, text in table.notes if subject == "filled in"] == [
        "a: 1 missing by the median 3, marked by a[missing]",
        "b: 1 missing by the median 5, marked by b[missing]",
        "colour: 1 missing by a level of their own, marked by colour[missing]",
    ]


def test_missing_values_refused(write):
    with pytest.raises(InputError, match=r"1 missing values in a \(first in row 2\)"):
        files.read(write("a.csv", GAPS), "y", missing="error")
    with pytest.raises(InputError, match="unknown treatment of missing values 'dorp'; did you mean 'drop'"):
        files.read(write("a.csv", GAPS), "y", missing="dorp")


def test_a_column_that_is_constant_where_rows_are_complete_is_left_out_with_its_gaps(write):
    text = "a,b,y\n1,1,0.5\n2,1,1\n3,1,2\n4,,3\n5,,5\n6,2,\n"
    table = files.read(write("a.csv", text), "y")
    assert [feature.name for feature in table.encoding.features] == ["a"]
    assert table.rows == 5
    assert ("left out", "b: always 1") in table.notes


def test_columns_that_cannot_be_used_are_named(patients, write):
    frame = patients.with_columns(
        (pl.col("age") * 1e200).alias("huge"),
        pl.lit("A").alias("site"),
        pl.lit(3.0).alias("three"),
        pl.lit(None, pl.String).alias("notes"),
        pl.Series("id", [f"p{i}" for i in range(len(patients))]),
        pl.Series("pair", [[1, 2]] * len(patients)),
    )
    table = files.read(write("p.parquet", frame), "died")
    assert [text.split(", too")[0] for _, text in table.notes] == [
        "huge: its sd is inf",
        "site: always A",
        "three: always 3",
        "notes: missing in every row",
        "id: text with 200 different values in 200 rows (an identifier?)",
        "pair: neither numbers nor text",
    ]
    assert table.encoding == files.read(write("q.parquet", patients), "died").encoding


def test_first_rows_that_mislead(write):
    rows = "".join(f"{i % 7},{i % 3}\n" for i in range(12_000))
    table = files.read(write("a.csv", f"a,y\n{rows}1.5,0\n"), "y", model="poisson")
    assert table.columns["a"].mean == pytest.approx((sum(i % 7 for i in range(12_000)) + 1.5) / 12_001)
    words = files.read(write("b.csv", f"a,b,y\n{rows.replace(',', ',2.5,')}word,3.5,0\n"), "y", model="poisson")
    assert words.columns["a"].num_levels == 8
    assert words.columns["b"].high == 3.5
    late = files.read(write("c.csv", "a,b,y\n" + "1,,1\n2,,0\n" * 6_000 + "1,5,0\n2,6,1\n"), "y", model="logistic")
    assert late.columns["b"].mean == 5.5


def test_numbers_that_name_categories(patients, write):
    for suffix in (".csv", ".parquet"):
        table = files.read(write(f"p{suffix}", patients), "died", categories=["visits"])
        assert "visits[0]" in {feature.name for feature in table.encoding.features}


def test_names_and_text_are_stripped_and_names_are_found_for_columns_without(write):
    table = files.read(write("a.csv", ", b, c\n1, 2.5, x\n2, 3, y\n3, 1, x\n4, 2, y\n"), "b")
    assert [feature.name for feature in table.encoding.features] == ["column_1", "c[y]"]


def test_another_file_is_encoded_alike(patients, write):
    table, features, _ = encoded(write("p.csv", patients))
    again = files.encode(write("q.parquet", patients.drop("died")), files.Encoding.of(table.encoding.to_json()))
    np.testing.assert_array_equal(again, features)
    strange = patients.with_columns(pl.lit("pink").alias("colour"))
    with pytest.raises(InputError, match="row 1 has a level of colour that the run has not seen"):
        files.encode(write("r.csv", strange), table.encoding)
    with pytest.raises(InputError, match="has no column 'age'"):
        files.encode(write("s.csv", patients.drop("age")), table.encoding)
    gap = patients.with_columns(pl.when(pl.col("age") > 60).then(None).otherwise(pl.col("age")).alias("age"))
    found = files.encode(write("t.csv", gap), table.encoding)
    np.testing.assert_array_equal(np.isnan(found).any(1), patients["age"] > 60)
    np.testing.assert_array_equal(np.isnan(found[:, 2:]), False)
    kept = files.read(write("t.csv", gap), "died", missing="indicator")
    names = ["", *(feature.name for feature in kept.encoding.features)]
    again = files.encode(write("u.csv", gap.with_columns(pl.lit(None, pl.String).alias("colour"))), kept.encoding)
    is_colour = [name.startswith("colour") for name in names]  # never missing in the run, so that nothing stands for it
    np.testing.assert_array_equal(np.isnan(again), np.broadcast_to(is_colour, again.shape))


def test_columns_may_have_the_names_of_statistics(write):
    names = ("outcome", "rows", "0", "missing x", "x", "number", "levels x", "count")
    values = np.random.default_rng(0).normal(size=(20, len(names))).round(3)
    frame = pl.DataFrame(dict(zip(names, values.T, strict=True))).with_columns(
        pl.Series("x", ["a", "b"] * 10), pl.Series("count", [0, 1, 1, 2] * 5)
    )
    table, features, outcomes = encoded(write("a.parquet", frame), "count", model="poisson")
    np.testing.assert_array_equal(outcomes, frame["count"])
    assert [feature.column for feature in table.encoding.features] == list(names[:-1])
    rows = frame["rows"].to_numpy()
    np.testing.assert_allclose(features[:, 2], (rows - rows.mean()) / rows.std(ddof=1), atol=1e-5)
