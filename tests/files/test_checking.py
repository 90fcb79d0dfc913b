"""`ewsg.files.check`: columns and their kinds, and the rows that cannot be sampled as they are."""

import pytest

from ewsg import files
from ewsg.errors import InputError


def test_kinds_and_faulty_rows(write):
    text = "a,b,when,flag,word\n1,2,2020-01-01,true,x\n,inf,2020-01-02,false,x\nnan,3,2020-01-05,true,NA\n4,5,,true,y\n"
    found = files.check(write("a.csv", text + "5,1.5,2020-01-04,true,y\n"))
    assert {name: column.kind for name, column in found.columns.items()} == {
        "a": "number",
        "b": "number",
        "when": "date",
        "flag": "boolean",
        "word": "category",
    }
    assert [column.missing for column in found.columns.values()] == [2, 0, 1, 0, 1]
    assert (found.rows, found.bad_rows, found.num_bad_rows, found.ok) == (5, [2, 3, 4], 3, False)
    lines = str(found).splitlines()
    assert lines[2].split(maxsplit=2) == ["b", "number", "1 infinite"]
    assert lines[3].endswith("1 missing; from 2020-01-01 to 2020-01-05")
    assert lines[4].endswith("80.0% true")
    assert lines[-3] == "3 rows with missing or infinite values: 2, 3, 4"
    assert lines[-2].startswith("! Infinite values have to be corrected")
    assert lines[-1].startswith("! ewsg sample leaves out rows with missing values")


def test_data_without_fault(patients, write):
    found = files.check(write("p.parquet", patients))
    assert found.ok
    assert str(found).endswith("Every row can be sampled as it is.")


def test_many_faulty_rows_are_counted_and_the_first_listed(write):
    found = files.check(write("a.csv", "a,b\n" + "".join(f"{i},{i * i}\n3,\n" for i in range(30))))
    assert (found.bad_rows, found.num_bad_rows) == (list(range(2, 21, 2)), 30)
    assert "30 rows with missing or infinite values: 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, ..." in str(found)


def test_too_few_columns_to_explain_anything(write):
    found = files.check(write("a.csv", "a,b\n1,7\n2,7\n4,7\n"))
    assert not found.ok
    assert "always 7" in str(found)
    assert str(found).endswith("! There are not two columns that can be used, one of them to explain the other.")


def test_names_without_rows(write):
    with pytest.raises(InputError, match="has names but no rows"):
        files.check(write("a.csv", "a,b\n"))
