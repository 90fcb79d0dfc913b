import errno
import importlib.metadata
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import pytest

import ewsg
from ewsg import cli
from ewsg.cli import doctor
from ewsg.errors import DataNotFound, InputError


@pytest.fixture
def run(monkeypatch, capsys):
    """Run `ewsg ARGUMENTS` through the entry point; gives exit code, stdout and stderr."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["ewsg", *arguments])
        with mock.patch.dict(os.environ), pytest.raises(SystemExit) as exit:
            cli.main()
        return exit.value.code, *capsys.readouterr()

    return run


@pytest.fixture
def demo(monkeypatch):
    """A stand-in for `ewsg.lab.demo.main`."""
    main = mock.Mock()
    monkeypatch.setitem(sys.modules, "ewsg.lab.demo", SimpleNamespace(main=main))
    return main


def test_help_shows_the_commands_and_examples(run):
    code, out, _ = run("--help")
    assert code == 0
    assert "Examples:" in out
    assert "ewsg demo --quick --seed 1" in out
    assert "ewsg doctor" in out
    assert "ewsg report run.npz" in out


def test_one_version_everywhere(run):
    assert run("--version")[:2] == (0, f"ewsg {ewsg.__version__}\n")
    assert importlib.metadata.version("ewsg") == ewsg.__version__
    citation = Path(__file__).parents[2] / "CITATION.cff"
    assert f"\nversion: {ewsg.__version__}\n" in citation.read_text()


def test_demo_passes_its_options_on(run, demo):
    assert run("demo")[0] == 0
    demo.assert_called_once_with(out=Path("ewsg-demo"), seed=0, quick=False)
    demo.reset_mock()
    assert run("demo", "--out", "x", "--seed", "3", "--quick")[0] == 0
    demo.assert_called_once_with(out=Path("x"), seed=3, quick=True)


def test_bench_accuracy_passes_its_options_on(run, monkeypatch):
    main = mock.Mock()
    monkeypatch.setitem(sys.modules, "ewsg.lab.accuracy.benchmark", SimpleNamespace(compare=main))
    assert (
        run("bench", "accuracy", "--problem", "pima", "--method", "SGHMC", "--seeds", "2", "--scale", "smoke")[0] == 0
    )
    main.assert_called_once_with(Path("ewsg-accuracy"), ["pima"], ["SGHMC"], 2, "smoke", first_seed=0)


def test_report_writes_a_page_on_a_saved_run(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    saved = str(Path(__file__).parents[1] / "result" / "files" / "uniform-0.1.0")
    assert run("report", saved) == (0, "Wrote report.html.\n", "")
    assert "Uniform × BAOAB" in Path("report.html").read_text(encoding="utf-8")


def test_a_report_that_cannot_be_written_is_one_sentence(run, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    saved = tmp_path / "run.npz"
    saved.write_bytes((Path(__file__).parents[1] / "result" / "files" / "uniform-0.1.0").read_bytes())
    before = saved.read_bytes()
    assert run("report", "run.npz", "--out", "run.npz")[::2] == (
        2,
        "ewsg: a report is a page of HTML: give it a name that ends in .html, not 'run.npz'\n",
    )
    assert saved.read_bytes() == before
    assert run("report", "run.npz", "--out", ".")[::2] == (2, "ewsg: . is a folder: give the name of a file in it\n")
    assert run("report", "none.npz")[::2] == (2, "ewsg: no saved run at none.npz: check the path\n")


@pytest.mark.untyped  # typer hands over its own base class of typer.Context
def test_bench_speed_hands_its_options_to_the_script(run, monkeypatch):
    started = mock.Mock(return_value=SimpleNamespace(returncode=3))
    monkeypatch.setattr(subprocess, "run", started)
    assert run("bench", "speed", "--tasks", "A")[0] == 3
    assert [Path(word).name for word in started.call_args[0][0][1:]] == ["speed.py", "--tasks", "A"]


@pytest.mark.untyped  # typer hands over its own base class of typer.Context
def test_bench_speed_without_a_checkout_says_so(run, monkeypatch, tmp_path):
    monkeypatch.setattr(ewsg, "__file__", str(tmp_path / "ewsg" / "__init__.py"))
    code, _, err = run("bench", "speed")
    assert code == 2
    assert "from a checkout" in err


@pytest.mark.parametrize("error", [InputError, DataNotFound])
def test_an_input_error_is_one_sentence(run, demo, error):
    demo.side_effect = error("the step size is negative: give a positive one")
    assert run("demo") == (2, "", "ewsg: the step size is negative: give a positive one\n")


def test_any_other_error_keeps_its_traceback(monkeypatch, demo):
    demo.side_effect = ValueError("a bug")
    monkeypatch.setattr(sys, "argv", ["ewsg", "demo"])
    with mock.patch.dict(os.environ), pytest.raises(ValueError, match="a bug"):
        cli.main()


@pytest.mark.parametrize("arguments", [["demos"], ["demo", "--sed", "1"], ["demo", "--seed", "x"]])
def test_a_wrong_command_line_exits_with_two(run, demo, arguments):
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert arguments[-1] in err or arguments[-2] in err
    demo.assert_not_called()


@pytest.mark.parametrize(("status", "code"), [("ok", 0), ("warn", 0), ("fail", 1)])
def test_doctor_exits_with_one_if_a_check_fails(monkeypatch, run, status, code):
    monkeypatch.setattr(doctor, "check", lambda: doctor.Report([doctor.Check("jaxlib", status, "found")]))
    assert run("doctor")[0] == code


def test_compiled_programs_are_cached_unless_the_user_says_where(monkeypatch, run, demo):
    seen = []
    demo.side_effect = lambda **_: seen.append(os.environ["JAX_COMPILATION_CACHE_DIR"])
    monkeypatch.delenv("JAX_COMPILATION_CACHE_DIR", raising=False)
    run("demo")
    monkeypatch.setenv("JAX_COMPILATION_CACHE_DIR", "/elsewhere")
    run("demo")
    assert "ewsg" in seen[0]
    assert seen[1] == "/elsewhere"


def test_importing_the_command_line_does_not_import_jax():
    code = "import sys, ewsg.cli; print(*({'jax', 'numpy', 'matplotlib'} & sys.modules.keys()))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_a_full_disk_is_one_sentence():
    code = "import sys; sys.argv = ['ewsg', '--version']; from ewsg import cli; cli.main()"
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.executable, "-c", code], stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr == "ewsg: cannot write the output: No space left on device; free some space or write elsewhere\n"


@pytest.mark.parametrize(("number", "said"), [(errno.EPIPE, ""), (errno.ENOSPC, "ewsg: cannot write results.json: ")])
def test_a_write_that_fails_is_no_traceback(run, demo, number, said):
    demo.side_effect = OSError(number, os.strerror(number), "results.json")
    code, out, err = run("demo")
    assert (code, out) == (1, "")
    assert err.startswith(said)
    assert err.count("\n") == bool(said)


def test_another_system_error_keeps_its_traceback(monkeypatch, demo):
    demo.side_effect = FileNotFoundError(errno.ENOENT, "a bug")
    monkeypatch.setattr(sys, "argv", ["ewsg", "demo"])
    with mock.patch.dict(os.environ), pytest.raises(FileNotFoundError, match="a bug"):
        cli.main()
