"""`ewsg sample` and `ewsg check`: every mistake is one sentence with exit code 2, and nothing is written."""

import io
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import polars as pl
import pytest

import ewsg
from ewsg import cli, files

GOOD = "x,colour,y\n1,red,no\n2,blue,yes\n3,red,no\n4,red,yes\n5,blue,no\n"


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Run `ewsg ARGUMENTS` in a folder of its own; gives exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["ewsg", *arguments])
        with mock.patch.dict(os.environ), pytest.raises(SystemExit) as exit:
            cli.main()
        return exit.value.code, *capsys.readouterr()

    return run


def parquet() -> bytes:
    memory = io.BytesIO()
    pl.DataFrame({"x": [1.0, 2.0]}).write_parquet(memory)
    return memory.getvalue()


OPTIONS = {  # mistake: (options after `ewsg sample a.csv`, part of the sentence)
    "wrong column": (("--outcome", "yy"), "a.csv has no column 'yy'; did you mean 'y'? (columns: x, colour, y)"),
    "wrong drop": (("--drop", "colur"), "a.csv has no column 'colur'; did you mean 'colour'?"),
    "outcome dropped": (("--drop", "y"), "y is the outcome and cannot be dropped"),
    "text for counts": (
        ("--model", "poisson"),
        "the outcome y is text (no, yes), and poisson regression",
    ),
    "fine accuracy": (("--accuracy", "1e-9"), "accuracy=1e-09 is finer than"),
    "out is a folder": (("--out", "."), ". is a folder"),
    "out is not ours": (("--out", "a.csv"), "a.csv exists and is not a saved run: choose another name"),
    "out without a folder": (("--out", "b/c.npz"), "the folder b does not exist"),
}
LINEAR, STRICT = ("--model", "linear"), ("--missing", "error")
FILES = {  # mistake: (file, content, options, part of the sentence)
    "no suffix": ("a.xlsx", GOOD, (), "a.xlsx has no suffix of a known format (.csv, .tsv, .parquet, .feather, .npz, "),
    "empty": ("a.csv", "", (), "a.csv is empty: give a file with a row of names"),
    "names only": ("a.csv", "x,y\n", (), "a.csv has names but no rows"),
    "Parquet as CSV": ("a.csv", parquet(), (), "a.csv is not CSV but Parquet: give it the suffix of what it is"),
    "CSV as Parquet": ("a.parquet", GOOD, (), "a.parquet is not Parquet but text: give it the suffix"),
    "CSV as Feather": ("a.feather", GOOD, (), "a.feather is not Feather but text: give it the suffix"),
    "CSV as NPZ": ("a.npz", GOOD, (), "a.npz is not NPZ but text"),
    "CSV as LIBSVM": ("a.libsvm", GOOD, (), "a.libsvm cannot be read as LIBSVM: "),
    "half a Parquet": ("a.parquet", parquet()[:60], (), "a.parquet cannot be read as Parquet: "),
    "a zip that is no NPZ": ("a.npz", b"PK\x03\x04 and so on", (), "a.npz cannot be read as NPZ: "),
    "TSV as CSV": ("a.csv", GOOD.replace(",", "\t"), (), "a.csv is not CSV: its first line has one name with 2 tabs"),
    "CSV as TSV": ("a.tsv", GOOD, (), "a.tsv is not TSV: its first line has one name with 2 commas"),
    "semicolons": ("a.csv", GOOD.replace(",", ";"), (), "its first line has one name with 2 semicolons"),
    "no names": ("a.csv", "1,2\n3,4\n", (), "the first line of a.csv has numbers and no names"),
    "a name twice": ("a.csv", "x,x,y\n1,2,3\n", (), "a.csv has more than one column named 'x'"),
    "Latin-1": ("a.csv", "x,né,y\n1,2,3\n".encode("latin1"), (), "a.csv is not text in UTF-8"),
    "Latin-1 below": (
        "a.csv",
        ("x,y\n" + "1,a\n" * 9000 + "1,é\n").encode("latin1"),
        (),
        "a.csv cannot be read as CSV",
    ),
    "a row too long": ("a.csv", "x,y\n1,2\n1,2,3\n", (), "a.csv cannot be read as CSV: "),
    "one class": ("a.csv", GOOD.replace("yes", "no"), (), "the outcome y is always no"),
    "nothing left": ("a.csv", "a,b,y\n1,,1\n1,,2\n1,,4\n", LINEAR, "y with (a: always 1; b: missing in every row)"),
    "no row complete": (
        "a.csv",
        "a,b,y\n1,,1\n,2,2\n2,,4\n,3,4\n3,,9\n",
        LINEAR,
        "only 0 of 5 rows of a.csv are",
    ),
    "missing": ("a.csv", GOOD.replace("2,", ","), STRICT, "1 missing values in x (first in row 2): fill them in, drop"),
}
MISTAKES = FILES | {name: ("a.csv", GOOD, *rest) for name, rest in OPTIONS.items()}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_one_sentence_and_nothing_is_written(run, tmp_path, name):
    file, content, options, sentence = MISTAKES[name]
    (tmp_path / file).write_bytes(content if isinstance(content, bytes) else content.encode())
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    code, out, err = run("sample", file, "--outcome", "y", "--out", "run.npz", *options)
    assert (code, err.count("\n")) == (2, 1), err
    assert err.startswith("ewsg: ")
    assert sentence in err
    assert out == "" or name == "fine accuracy"
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_a_file_that_is_not_there_and_a_folder(run, tmp_path):
    (tmp_path / "dat.csv").write_text(GOOD)
    sentence = "ewsg: no such file: data.csv; did you mean dat.csv?\n"
    assert run("sample", "data.csv", "--outcome", "y") == (2, "", sentence)
    assert run("sample", ".", "--outcome", "y") == (2, "", "ewsg: . is a folder: give a file of data in it\n")


@pytest.mark.parametrize("arguments", [("--model", "probit"), ("--missing", "ignore"), ("--seed", "x")])
def test_a_wrong_option_exits_with_two(run, tmp_path, arguments):
    (tmp_path / "a.csv").write_text(GOOD)
    code, out, err = run("sample", "a.csv", "--outcome", "y", *arguments)
    assert (code, out) == (2, "")
    assert arguments[0] in err


@pytest.fixture
def reading(monkeypatch):
    """A stand-in for `ewsg.files.read`, whose table's run is saved as a word."""
    verdict = SimpleNamespace(reached=True)
    done = mock.Mock(verdict=verdict)
    done.save.side_effect = lambda path: Path(path).write_text("saved")
    read = mock.Mock()
    read.return_value.sample.return_value = done
    monkeypatch.setattr(files, "read", read)
    return read


def test_options_are_handed_on(run, reading, tmp_path):
    options = (
        "--model",
        "negative-binomial",
        "--missing",
        "indicator",
        "--drop",
        "a",
        "--drop",
        "b",
        "--category",
        "c",
    )
    assert (
        run("sample", "d.csv", "--outcome", "y", *options, "--accuracy", "0.1", "--seed", "3", "--out", "r.npz")[0] == 0
    )
    reading.assert_called_once_with(
        Path("d.csv"), "y", model="negative-binomial", missing="indicator", drop=["a", "b"], categories=["c"]
    )
    reading.return_value.sample.assert_called_once_with(accuracy=0.1, seed=3)
    assert (tmp_path / "r.npz").read_text() == "saved"


def test_a_verdict_that_falls_short_is_exit_code_one_and_still_saved(run, reading, tmp_path):
    reading.return_value.sample.return_value.verdict.reached = False
    code, out, _ = run("sample", "d.csv", "--outcome", "y", "--out", "r.npz")
    assert code == 1
    assert "Saved to r.npz" in out
    assert (tmp_path / "r.npz").exists()


def test_check_says_what_it_found_by_its_exit_code(run, tmp_path):
    (tmp_path / "a.csv").write_text(GOOD)
    code, out, _ = run("check", "a.csv")
    assert code == 0
    assert "colour  category  red (3), blue (2)" in out
    (tmp_path / "a.csv").write_text(GOOD.replace("4,", ","))
    code, out, _ = run("check", "a.csv")
    assert code == 1
    assert "1 rows with missing or infinite values: 4" in out
    assert run("check", "b.csv")[0] == 2


def test_from_a_file_to_a_saved_run_and_back(run, tmp_path):
    """The whole way: what is printed is in the saved run, which holds all that is needed to encode other rows."""
    rng = np.random.default_rng(0)
    x, colour = rng.normal(50, 10, 400), rng.choice(["red", "blue"], 400, p=[0.7, 0.3])
    y = np.where(rng.logistic(size=400) < 0.1 * (x - 50) + (colour == "blue"), "yes", "no")
    pl.DataFrame({"x": x, "colour": colour, "y": y}).write_csv(tmp_path / "a.csv")
    code, out, err = run("sample", "a.csv", "--outcome", "y", "--accuracy", "0.1", "--out", "run.npz")
    assert (code, err) == (0, "")
    assert "outcome   y: no (" in out
    assert "logistic regression, log odds of yes" in out
    loaded = ewsg.load(tmp_path / "run.npz")
    found = files.coefficients(loaded)
    assert str(found) in out
    assert found.names == ("(intercept)", "x", "colour[blue]")
    np.testing.assert_array_less(np.abs(found.table["mean"] - [-5, 0.1, 1]), 4 * found.table["sd"])
    encoding = files.Encoding.of(loaded.settings["table"])
    eta = files.encode(tmp_path / "a.csv", encoding) @ loaded.draws[0, 0]
    a, b, c = found.draws[0, 0]
    np.testing.assert_allclose(eta, a + b * x + c * (colour == "blue"), rtol=1e-4, atol=1e-4)
    assert run("sample", "a.csv", "--outcome", "yy", "--out", "run.npz")[0] == 2  # and the run is still there
    assert ewsg.load(tmp_path / "run.npz").settings["table"] == loaded.settings["table"]


def test_help_has_examples_and_does_not_import_jax(run):
    code, out, _ = run("sample", "--help")
    assert code == 0
    assert "ewsg sample visits.parquet --outcome visits --model negative-binomial" in out
    code = "import sys, ewsg.cli.app; print(*({'jax', 'numpy', 'polars'} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""
