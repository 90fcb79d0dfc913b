"""The page on a run, opened in a real browser: no error, every figure, readable at every width, light and dark."""

import browser
import pytest
from made_up import REACHED, SETTINGS, made_up, normal

from ewsg.result.report import page

pytestmark = pytest.mark.slow

LONG = "a_module.with_a_name_that_is_much_longer_than_any_line_of_a_telephone_could_ever_be"
WIDTHS = [400, 1400]


@pytest.fixture(scope="module")
def pages():
    plan = {f"number {i}": [0.1 * i, "a reason that takes a few words to tell, as most of them do"] for i in range(9)}
    drawn = SETTINGS["estimator"] | {"points": {"$array": [[0.125] * 40] * 40}, "component": "Leverage" * 8}
    warned = {"verdict": REACHED.to_json(), "plan": plan, "estimator": drawn, "likely_cause": "Because. " * 40}
    many = normal(200)
    many[0, :, 150] += 4
    return [
        page(made_up({"theta": normal(2)})),
        page(made_up({LONG: many, "<b>": normal(seed=1)}, warned, status="diverged")),
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_whole_and_readable_at_every_width(pages, scheme, tmp_path):
    found, console = browser.measured(pages, WIDTHS, scheme, tmp_path)
    assert console == []
    assert [one["width"] for one in found] == WIDTHS * 2
    for one, figures in zip(found, [7, 7, 15, 15], strict=True):
        assert one["overflow"] == one["outside"] == 0
        assert len(one["images"]) == figures
        assert all(300 <= width <= min(480, one["width"]) for width, *_ in one["images"])
        assert all(height > 150 and paths > 10 for _, height, paths in one["images"])
        assert one["letters"] >= 13
        text, paper = (luminance(one[what]) for what in ("text", "paper"))
        assert (text < paper) is (scheme == "light")
        assert contrast(text, paper) > 10
        assert one["axes"] == one["text"]


def luminance(colour):
    """Relative luminance of a colour "rgb(r, g, b)", as in the Web Content Accessibility Guidelines."""
    parts = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    return (max(one, other) + 0.05) / (min(one, other) + 0.05)
