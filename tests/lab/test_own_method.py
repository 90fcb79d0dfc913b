"""`ewsg bench accuracy --method module:object`: every form of a method, and one sentence for what is none."""

import json
import sys

import pytest

import ewsg
from ewsg import problems
from ewsg.errors import InputError, UnknownOption
from ewsg.lab.accuracy.benchmark import compare
from ewsg.lab.accuracy.methods import METHODS
from ewsg.lab.accuracy.own import find, source

SOURCE = """
import ewsg

pair = (ewsg.Uniform(5), ewsg.BAOAB(step_size=0.5, friction=2.0))
method = ewsg.recipes.sghmc(5, 0.5, 2.0)
kernel = ewsg.NUTS(0.1)
number = 3

class Shelf:
    @staticmethod
    def recipe(batch_size, step_size, friction=7.0):
        return ewsg.recipes.sghmc(batch_size, step_size, friction)

def recipe(batch_size, step_size, friction, rule="weight"):
    return ewsg.recipes.paired(batch_size // 2, step_size, friction, rule)

def function(problem, start, step_size):
    return ewsg.Full(), ewsg.BAOAB(step_size, problem.friction)

def too_much(a, b, c, d):
    pass

def returns_nothing(problem, start, h):
    pass
"""


@pytest.fixture(autouse=True)
def module(tmp_path, monkeypatch):
    """A module in the current folder, which is not on the path."""
    (tmp_path / "my_methods.py").write_text(SOURCE)
    (tmp_path / "my_broken_methods.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("my_methods", None)


@pytest.fixture(scope="module")
def skewed():
    return problems.load("skewed")


@pytest.mark.parametrize("name", ["pair", "method"])
def test_a_pair_gets_the_step_size_of_the_benchmark(skewed, name):
    built = find(f"my_methods:{name}")(skewed, None, 0.01)
    assert isinstance(built, ewsg.recipes.Method)
    assert (built.integrator.step_size, built.integrator.friction, built.estimator.batch_size) == (0.01, 2.0, 5)


def test_a_recipe_gets_the_data_per_step_and_the_friction_of_the_problem(skewed):
    built = find("my_methods:recipe")(skewed, None, 0.01)
    assert built.estimator.batch_size == skewed.data_per_step // 2
    assert (built.integrator.step_size, built.integrator.friction) == (0.01, skewed.friction)
    assert find("my_methods:Shelf.recipe")(skewed, None, 0.01).integrator.friction == 7.0
    assert find("ewsg.recipes:sghmc")(skewed, None, 0.01).estimator.batch_size == skewed.data_per_step


def test_a_function_of_the_problem_and_a_kernel(skewed):
    assert isinstance(find("my_methods:function")(skewed, None, 0.01).estimator, ewsg.Full)
    assert isinstance(find("my_methods:kernel")(skewed, None, 0.01), ewsg.NUTS)


def test_the_names_of_the_table_come_first():
    assert find("SGHMC") is METHODS["SGHMC"]
    assert source("SGHMC") == ""
    with pytest.raises(UnknownOption, match=r"did you mean 'SGHMC'.*your own as module:object"):
        find("SGHMCC")


@pytest.mark.parametrize(
    ("name", "sentence"),
    [
        ("nowhere_at_all:x", "'nowhere_at_all' cannot be imported"),
        ("my_broken_methods:x", r"cannot be imported \(ZeroDivisionError: division by zero\)"),
        ("my_methods:recipes", "did you mean 'recipe'"),
        ("my_methods:number", "give an .estimator, integrator. pair, .*, not a int"),
        ("my_methods:too_much", "not a function of other arguments"),
    ],
)
def test_what_is_no_method_is_one_sentence(name, sentence):
    with pytest.raises(InputError, match=sentence) as caught:
        find(name)
    assert "\n" not in str(caught.value)


def test_a_function_that_returns_no_method_is_one_sentence(skewed):
    with pytest.raises(InputError, match=r"my_methods:returns_nothing: give .*, not a NoneType"):
        find("my_methods:returns_nothing")(skewed, None, 0.01)


def test_it_stands_in_the_table_and_the_figure(tmp_path):
    names = ["paired", "my_methods:recipe"]
    results = compare("out", ["skewed"], names, num_seeds=1, scale="smoke", grid=(1.0,))
    assert [row["method"] for row in results["rows"]] == names
    ours, own = results["rows"]
    assert own["error"] == ours["error"]
    assert "my_methods:recipe" in (tmp_path / "out" / "table.md").read_text()
    assert (tmp_path / "out" / "figure.png").is_file()
    assert json.loads((tmp_path / "out" / "results.json").read_text())["experiment"] == "bench accuracy"
