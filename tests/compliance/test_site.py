"""The documentation site: its reference is complete, its pages run, and the tools that look at it see faults."""

import importlib
import re
import shutil
import subprocess
import sys
import zlib
from pathlib import Path

import pytest

import ewsg

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "docs" / "_sphinx"))
catalogue, docstrings, reference = map(importlib.import_module, ("catalogue", "docstrings", "reference"))
sys.path.remove(str(ROOT / "docs" / "_sphinx"))
sys.path.insert(0, str(ROOT / "tools"))
site_links, inventories = map(importlib.import_module, ("site_links", "inventories"))
sys.path.remove(str(ROOT / "tools"))


def page_of(name: str) -> str:
    (slug,) = [page.slug for page in catalogue.pages() if name in page.names]
    return slug


def test_every_public_name_is_in_the_reference():
    pages = catalogue.pages()
    text = "\n".join(map(reference.text_of, pages))
    shown = {id(catalogue.resolve(name)) for page in pages for name in page.names}
    for name in ewsg.__all__:
        if name in catalogue.modules():
            assert f".. automodule:: ewsg.{name}\n" in text
            for own in catalogue.public_names(f"ewsg.{name}"):
                assert id(catalogue.resolve(f"ewsg.{name}.{own}")) in shown, f"ewsg.{name}.{own}"
        else:
            assert re.search(rf"^\.\. auto(function|class|exception):: ewsg\.{name}$", text, re.MULTILINE), name
    names = [name for page in pages for name in page.names]
    assert len(names) == len(set(names))


def test_a_new_component_or_module_needs_no_edit(monkeypatch):
    class Mirrored:
        """Data and their mirror images."""

    monkeypatch.setitem(ewsg._HOMES, "Mirrored", "estimators.public")
    monkeypatch.setitem(ewsg._HOMES, "newcomer", None)
    monkeypatch.setattr(ewsg, "__all__", sorted([*ewsg.__all__, "Mirrored", "newcomer"]))
    monkeypatch.setattr(ewsg, "Mirrored", Mirrored, raising=False)
    module = type(ewsg)("ewsg.newcomer", "A new module.")
    module.__dict__.update(__all__=["Mirrored", "fresh"], Mirrored=Mirrored, fresh=page_of)
    monkeypatch.setitem(sys.modules, "ewsg.newcomer", module)
    assert page_of("ewsg.Mirrored") == "estimators"
    assert page_of("ewsg.newcomer.fresh") == "newcomer"
    assert page_of("ewsg.Paired") == "estimators"
    assert page_of("ewsg.AbstractEstimator") == "extending"
    assert page_of("ewsg.recipes.Method") == "recipes"


def test_a_role_is_documented_once_and_not_by_every_component():
    text = reference.text_of(next(page for page in catalogue.pages() if page.slug == "estimators"))
    assert "noise_factor" not in text.replace("``noise_factor``", "")
    assert "   :members: from_module" in reference.text_of(catalogue.pages()[0])


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        (["Of |x| and a*b, `code` x_."], ["Of \\|x\\| and a\\*b, \\ ``code``\\  x\\_.", ""]),
        (["**Bold**, *soft*."], ["**Bold**, *soft*.", ""]),
        (["**With `b`** each"], ["**With** \\ ``b``\\  each", ""]),
        (
            ["a = 1,   b = 2      (eq. 3)"],
            [".. code-block:: none", "   :class: equation", "", "   a = 1,   b = 2    (eq. 3)", ""],
        ),
        (
            ["| a | b |", "|---|---|", "| `x` | 2 |"],
            [".. list-table::", "   :header-rows: 1", "", "   * - a", "     - b", "   * - \\ ``x``\\ ", "     - 2", ""],
        ),
        (["Args:", "    m: m.", "    **rest: a*b"], ["Args:", "    m: \\m.", "    **rest: a\\*b", ""]),
        (["Example:", "    >>> a*b", "    4"], ["Example:", "    >>> a*b", "    4", ""]),
        (['"one": first', "    and on", '"two": second'], ['- "one": first', "  and on", '- "two": second', ""]),
    ],
)
def test_docstrings_are_read_as_the_markdown_they_are(lines, expected):
    assert docstrings.convert(lines) == expected


def test_fields_keep_their_underscores_and_shapes():
    assert docstrings._field(":ivar coef_: `a*b`") == ":ivar coef\\_: `a*b`"
    assert docstrings._field(':vartype coef_: jaxtyping.Float[ndarray, "*k d"]') == (
        ':vartype coef\\_: Float[ndarray, "\\*k d"]'
    )
    assert docstrings._field(":param m: m") == ":param m: m"


def test_code_is_a_link_where_it_names_something_public():
    assert catalogue.target_of_link("Paired(b, rule='select')") == "ewsg.Paired"
    assert catalogue.target_of_link("ewsg.sample") == "ewsg.sample"
    assert catalogue.target_of_link("recipes.sghmc") == "ewsg.recipes.sghmc"
    for plain in ("plan", "sample", "Paired + 1", "run.draws", "x = 1", "--method"):
        assert catalogue.target_of_link(plain) is None


def test_the_page_on_reading_a_run_has_every_warning():
    """Each sentence is looked for in the source too, so that the page cannot outlive it."""
    page = (ROOT / "docs/reading.md").read_text()
    source = "".join((ROOT / f"ewsg/result/{name}.py").read_text() for name in ("advice", "heat", "paired"))
    for sentence in (
        *("became NaN or infinite", "diverged", "are finite but far too hot", "than the target temperature"),
        *("The chains have not mixed: R-hat is", "They are still near their starting points", "All draws of"),
        *("The temperature changes along", "The minibatches are too noisy for paired selection at this step"),
        *("The run was interrupted after", "No draw was kept of", "although the average over all"),
    ):
        assert sentence in page
        assert sentence in source.replace('"\n        f"', "").replace('"\n            "', "")
    verdicts = [importlib.import_module(f"ewsg.result.{name}") for name in ("verdict", "predictive")]
    for word in (*verdicts[0].ENDS, *(word for verdict in verdicts for word in verdict._WORDS)):
        assert f"| `{word}` |" in page


def run_page(name: str) -> dict:
    names = {}
    for code in re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs" / name).read_text(), re.DOTALL | re.MULTILINE):
        exec(code, names)
    return names


@pytest.mark.float32
def test_five_minutes_give_the_numbers_that_the_page_shows(tmp_path, monkeypatch, capsys):
    """To one unit of the last digit: other versions of JAX draw other minibatches."""
    monkeypatch.chdir(tmp_path)
    names = run_page("five-minutes.md")
    assert names["run"].verdict.reached
    number = re.compile(r"\d\.\d\d\b(?!\d)")
    text = (ROOT / "docs/five-minutes.md").read_text()
    shown = [line for line in text.splitlines() if re.match(r".*odds × \d|0\.57 \(", line)]
    printed = [line for line in capsys.readouterr().out.splitlines() if "odds" in line or line.startswith("0.")]
    assert len(shown) == len(printed) == 5
    for one, other in zip(shown, printed, strict=True):
        assert [float(x) for x in number.findall(one)] == pytest.approx(
            [float(x) for x in number.findall(other)], abs=0.011
        )


@pytest.mark.float32
def test_the_first_page_gives_a_posterior():
    assert run_page("index.md")["run"].verdict.reached


@pytest.mark.float32
def test_the_page_on_units():
    names = run_page("units.md")  # which asserts that both chains are equal
    assert names["other"].settings["integrator_in_sum_units"]["step_size"] == pytest.approx(1e-3)


def test_inventories_are_those_that_the_tool_writes():
    for project, objects in inventories.OBJECTS.items():
        header, packed = (ROOT / f"docs/inventories/{project}.inv").read_bytes().split(b"zlib.\n")
        expected = inventories.encoded(project, objects).split(b"zlib.\n")
        assert (header, zlib.decompress(packed)) == (expected[0], zlib.decompress(expected[1]))
    lines = zlib.decompress(inventories.encoded("jax", inventories.OBJECTS["jax"]).split(b"zlib.\n")[1]).decode()
    assert "jax.Array py:class 1 _autosummary/jax.Array.html#jax.Array -\n" in lines


GOOD = '<html><head></head><body><article><h1 id="a">A</h1><a href="two.html#b">x</a></article></body></html>'


def write(folder: Path, **pages: str) -> Path:
    for name, text in pages.items():
        (folder / f"{name}.html").write_text(text)
    return folder


def test_broken_links_are_found(tmp_path):
    write(tmp_path, one=GOOD, two=GOOD.replace('"a"', '"b"'))
    assert site_links.faults(tmp_path) == []
    bad = '<a href="none.html"></a><a href="two.html#c"></a><img src="https://example.org/x.png"><img src="x.png">'
    write(tmp_path, one=bad)
    (tmp_path / "site.css").write_text("@import url(https://example.org/font.css); a { background: url(data:x) }")
    assert site_links.faults(tmp_path) == [
        "one.html: loads https://example.org/x.png",
        "one.html: none.html: no such file",
        "one.html: two.html#c: no such place in the page",
        "one.html: x.png: no such file",
        "site.css: loads https://example.org/font.css",
    ]


@pytest.mark.skipif(not shutil.which("chromium"), reason="needs the browser Chromium")
def test_the_browser_sees_faults(tmp_path):
    theme = "<script>document.documentElement.dataset.theme = localStorage.getItem('mode')</script>"
    wrong = '<script>console.error("oh")</script><div style="width: 600px">.</div><p style="color: #ddd">pale</p>'
    write(
        tmp_path,
        one=GOOD.replace("<article>", f"{theme}<article>{wrong}"),
        two=GOOD.replace("<article>", f"{theme}<article>"),
    )
    command = [sys.executable, str(ROOT / "tools/site_browser.py"), str(tmp_path)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert found.returncode == 1
    lines = set(found.stdout.splitlines())
    assert {"one.html at 400 px: console: oh", "one.html at 1400 px: console: oh"} <= lines
    assert any(line.startswith("one.html at 400 px: is 6") for line in lines)
    assert "one.html at 400 px: light: contrast of p. is 1.4" in lines
    assert not [line for line in lines if line.startswith("two.html")]
