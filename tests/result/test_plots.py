"""The figure of a run: its values are those of the draws."""

import dataclasses
import sys

import numpy as np
import pytest
from made_up import made_up, normal
from matplotlib.colors import to_hex

from ewsg.collect import MomentsSummary
from ewsg.errors import InputError, MissingPackage, UnknownOption
from ewsg.result.plots.look import CHAINS, INK


def panels(figure, kind):
    return [axes for axes in figure.axes if axes.get_label() == kind]


def lines(axes):
    """Lines by what they stand for: their id, or their label."""
    return {line.get_gid() or line.get_label(): line for line in axes.lines}


@pytest.fixture(scope="module")
def run():
    return made_up({"<b>": normal(), "$\\frac$": 100 + normal(seed=1)})


@pytest.fixture(scope="module")
def figure(run):
    return run.plot()


def test_marginals_show_the_draws_with_mean_and_interval(run, figure):
    shown = panels(figure, "marginal")
    assert [axes.get_title(loc="left") for axes in shown] == ["$\\frac$", "<b>"]
    table = run.summary().parameters
    for number, axes in enumerate(shown):
        found = lines(axes)
        ends = found["interval"].get_xdata()
        np.testing.assert_allclose(ends, [table["5%"][number], table["95%"][number]], rtol=1e-6)
        np.testing.assert_allclose(found["mean"].get_xdata(), table["mean"][number], rtol=1e-6)
        heights, edges, _ = axes.patches[0].get_data()
        assert np.sum(heights * np.diff(edges)) == pytest.approx(1)
        draws = run.draws[axes.get_title(loc="left")]
        assert edges[[0, -1]] == pytest.approx([draws.min(), draws.max()], rel=1e-6)


def test_traces_are_the_draws_of_each_chain_in_its_colour(run, figure):
    (_, axes) = panels(figure, "trace")
    assert len(axes.lines) == 4
    for chain, line in enumerate(axes.lines):
        np.testing.assert_allclose(line.get_ydata(), run.draws["<b>"][chain], rtol=1e-6)
        assert line.get_color() == CHAINS[chain]
    assert axes.get_title(loc="left") == f"<b>, R-hat {run.summary().parameters['rhat'][1]:.2f}"


def test_temperatures_and_noise_are_averages_over_chains_beside_their_right_values():
    figure = made_up({"a": normal()}, temperature=2.5).plot()
    hot, noise = panels(figure, "time")
    found = lines(hot)
    assert found["kinetic_temperature"].get_ydata() == pytest.approx(2.5, rel=0.01)
    times, values = found["configurational_temperature"].get_data()
    assert values[times < 95] == pytest.approx(2.5, rel=0.01)
    assert values[times > 105] == pytest.approx(2.75, rel=0.01)
    assert list(found["right: 2.5"].get_ydata()) == [2.5, 2.5]
    assert lines(noise)["noise_ratio"].get_ydata() == pytest.approx(0.25)
    assert list(lines(noise)["at most 0.1"].get_ydata()) == [0.1, 0.1]


def test_missing_values_of_a_diagnostic_are_passed_over():
    run = made_up({"a": normal()})
    noise = np.full((4, 200), np.nan)
    noise[0, 100:] = 0.5
    figure = dataclasses.replace(run, stats={"noise_ratio": noise}).plot()
    (axes,) = panels(figure, "time")
    times, values = lines(axes)["noise_ratio"].get_data()
    assert np.isnan(values[times < 99]).all()
    assert values[times > 101] == pytest.approx(0.5)


def test_the_pair_is_that_of_the_two_largest_rhats():
    draws = normal(200)
    draws[0, :, 150] += 5
    draws[0, :, 30] += 3
    figure = made_up({"w": draws}).plot()
    (axes,) = panels(figure, "pair")
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("w[150]", "w[30]")
    for chain, line in enumerate(axes.lines):
        np.testing.assert_allclose(line.get_xydata(), draws[chain][:, [150, 30]], rtol=1e-6)
    shown = [axes.get_title(loc="left") for axes in panels(figure, "marginal")]
    assert {"w[0]", "w[1]", "w[2]", "w[30]", "w[150]"} < set(shown)
    assert len(shown) == 6


def test_parameters_can_be_named(run):
    figure = run.plot(["<b>"])
    assert [axes.get_title(loc="left") for axes in panels(figure, "marginal")] == ["<b>"]
    with pytest.raises(UnknownOption, match=r"unknown parameter '<i>'; did you mean '<b>'\?"):
        run.plot(["<i>"])
    with pytest.raises(InputError, match="parameters= is empty"):
        run.plot([])


def test_failed_chains_are_left_out():
    run = made_up({"a": normal(), "b": normal(seed=1)}, status="diverged")
    figure = run.plot()
    assert {len(axes.lines) for axes in panels(figure, "trace") + panels(figure, "pair")} == {3}
    assert lines(panels(figure, "time")[0])["kinetic_temperature"].get_ydata() == pytest.approx(1, rel=0.01)
    mean = lines(panels(figure, "marginal")[0])["mean"].get_xdata()[0]
    assert mean == pytest.approx(run.draws["a"][:3].mean(), rel=1e-5)


@pytest.mark.parametrize(
    "draws",
    [
        {"a": normal()[:, :1]},
        {"a": np.full((4, 200), 3.0)},
        {"a": 1e8 + np.arange(800).reshape(4, 200) % 2 * 1e-8},
        {"a": np.full((4, 200), np.nan)},
        {"a": np.where(normal() > 0, np.inf, 1.0)},
        {"a": normal() > 0},
    ],
    ids=["one draw", "equal", "equal up to rounding", "NaN", "infinite", "boolean"],
)
@pytest.mark.filterwarnings("ignore:invalid value:RuntimeWarning")  # mean and sd of infinite draws, in the summary
def test_any_draws_can_be_drawn(draws):
    run = made_up(draws)
    figure = dataclasses.replace(run, stats={}).plot()
    assert len(figure._repr_png_()) > 1000
    assert [axes.get_label() for axes in figure.axes] == ["marginal", "trace"]


def test_a_run_without_draws_is_one_sentence(run):
    moments = MomentsSummary(np.zeros((4, 2)), np.ones((4, 2)))
    with pytest.raises(InputError, match=r"^this run kept no draws to plot"):
        dataclasses.replace(run, draws=(), collected=moments).plot()
    with pytest.raises(InputError, match=r"^all 4 chains failed, which leaves nothing to plot"):
        dataclasses.replace(run, status=np.full(4, "nonfinite")).plot()
    empty = {name: values[:, :0] for name, values in run.draws.items()}
    stats = {name: values[:, :0] for name, values in run.stats.items()}
    with pytest.raises(InputError, match="No draw was kept of 1000 steps"):
        dataclasses.replace(run, draws=empty, stats=stats).plot()


def test_without_matplotlib_it_is_one_sentence(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingPackage, match=r"matplotlib, which is not installed: pip install 'ewsg\[report\]'"):
        run.plot()


def test_colours_do_not_depend_on_the_style_of_the_user(run):
    import matplotlib

    with matplotlib.rc_context({"axes.facecolor": "black", "text.color": "white", "xtick.color": "white"}):
        (axes, *_) = run.plot().axes
    assert to_hex(axes.get_facecolor()) == "#ffffff"
    assert axes.title.get_color() == INK
