"""The problems and the answers shipped with them belong together."""

import numpy as np
import pytest

import ewsg
from ewsg import problems

DATA = {"pima": "pima", "parkinsons": "parkinsons", "a9a": "a9a", "softmax": "wine", "network": "yacht"}


def needed(name):
    """The mark of a problem on published data."""
    return [pytest.mark.needs_data(DATA[name])] if name in DATA else []


@pytest.mark.parametrize("name", [pytest.param(name, marks=needed(name)) for name in problems.names()])
def test_shipped_answers_belong_to_their_problems(name):
    """The mean of the score over the posterior is 0: a Newton step from the answer's mean is a fraction of an sd."""
    problem, answer = problems.load(name), problems.answer(name)
    assert answer.mean.shape == answer.sd.shape
    assert np.all(np.linalg.eigvalsh(answer.cov) > 0)
    if problem.exact is None:
        assert answer.source["smallest_ess"] > 1000
        assert answer.source["largest_rhat"] < 1.01
        assert answer.source["divergences"] == 0


def test_a_changed_problem_is_not_answered(monkeypatch):
    import dataclasses

    problem = problems.load("skewed")
    other = dataclasses.replace(problem, target=ewsg.Target(lambda p, x: -((x - p[0]) ** 2), None, np.arange(5.0)))
    with pytest.raises(ewsg.errors.InputError, match="a different target"):
        problems.answers.read("skewed", other)


def test_unknown_problem_is_named():
    with pytest.raises(ewsg.errors.InputError, match="did you mean 'pima'"):
        problems.load("pimma")
