"""The public names of `ewsg`, sorted into the pages of the reference.

It reads the package, so that a new name needs no edit here. Tests import this file, so it must not need Sphinx.
"""

import ast
import importlib
import re
from pathlib import Path
from typing import Any, NamedTuple

import ewsg


class Page(NamedTuple):
    """A page of the reference.

    Attributes:
        slug: the name of its file.
        title: its heading.
        intro: the sentence below the heading.
        modules: the public modules that are described there.
        names: what is documented there, by the name that a user would import.
    """

    slug: str
    title: str
    intro: str
    modules: tuple[str, ...]
    names: list[str]


_START = ("sample", "plan", "resume", "load", "Target", "Run", "Plan")
_RESULTS = ("cost.RunCost", "summary.Summary", "verdict.Verdict", "predictive.PredictiveVerdict")
"""Classes of the parts of a `Run`."""
_ROOMS = ("estimators", "integrators", "kernels")
"""Rooms whose components `ewsg` exports too; the page of such a room shows them under the shorter name."""
_PAGES = (
    ("start", "Start here", "A target, a run, and what a run holds.", ()),
    (
        "models",
        "Targets and models",
        "Regressions with closed-form derivatives, networks, and modes.",
        ("models", "modules"),
    ),
    ("estimators", "Estimators", "Which data: the force from a few of the n data.", ()),
    ("integrators", "Integrators", "How to move, given a force.", ()),
    ("kernels", "Kernels", "Whole methods, which take neither an estimator nor an integrator.", ("kernels",)),
    ("recipes", "Recipes", "Published methods by name.", ("recipes",)),
    ("collectors", "Collectors", "What a run keeps of each draw.", ("collect",)),
    ("diagnostics", "Diagnostics", "How far draws are from the posterior.", ("diagnostics", "reference")),
    ("prediction", "Prediction", "Averages over the posterior, and how good they are.", ("prediction",)),
    ("coordinates", "Coordinates", "θ = c + L z, where the posterior of z is nearly N(0, I).", ("coordinates",)),
    ("datasets", "Data sets", "Published data, verified by their checksums.", ("datasets",)),
    ("problems", "Problems", "Posteriors with reference answers.", ("problems",)),
    ("theory", "Theory", "The paper's theorems, computed for your own posterior.", ("theory",)),
    (
        "extending",
        "Extending",
        "The roles, the messages between them, and tools for your own parts.",
        ("interface", "estimators", "integrators", "schedules", "random", "tree", "errors"),
    ),
)


def pages() -> list[Page]:
    """All pages in their order. A public module that none of them has gets a page of its own at the end."""
    found = [Page(slug, title, intro, modules, []) for slug, title, intro, modules in _PAGES]
    known = {module for page in found for module in page.modules}
    found += [Page(name, f"ewsg.{name}", "", (name,), []) for name in modules() if name not in known]
    by_slug = {page.slug: page for page in found}
    exported = [*_START, *(name for name in _homes() if name not in {*_START, *modules()})]
    for name in exported:
        by_slug[_slug(name)].names.append(f"ewsg.{name}")
    by_slug["start"].names.extend(f"ewsg.result.{name}" for name in _RESULTS)
    seen = {id(resolve(name)) for page in found for name in page.names}
    for page in found:
        for name in (f"ewsg.{module}.{name}" for module in page.modules for name in public_names(f"ewsg.{module}")):
            if id(resolve(name)) not in seen:
                seen.add(id(resolve(name)))
                abstract = name.rpartition(".")[2].startswith("Abstract")
                by_slug["extending" if abstract else page.slug].names.append(name)
    return found


def modules() -> list[str]:
    """The public modules."""
    return [name for name, home in _homes().items() if home is None]


def public_names(module: str) -> list[str]:
    """The names in `__all__`; without one, what a module defines or imports as `name as name`."""
    loaded = importlib.import_module(module)
    if hasattr(loaded, "__all__"):
        return list(loaded.__all__)
    assert loaded.__file__ is not None
    nodes = ast.parse(Path(loaded.__file__).read_text(encoding="utf-8")).body
    imported = (alias for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names)
    exported = [alias.name for alias in imported if alias.asname == alias.name]
    own = [name for name, value in vars(loaded).items() if getattr(value, "__module__", None) == module]
    return [name for name in dict.fromkeys([*exported, *own]) if not name.startswith("_")]


def resolve(name: str) -> Any:
    """The object of a dotted name."""
    module, _, attribute = name.rpartition(".")
    return getattr(importlib.import_module(module), attribute)


def _homes() -> dict[str, str | None]:
    """Every name that `ewsg` exports, sorted, and the module it comes from; None if it is a module itself."""
    return dict(sorted(vars(ewsg)["_HOMES"].items()))


def _slug(name: str) -> str:
    """The page of a name that `ewsg` itself exports."""
    room = (_homes()[name] or "").partition(".")[0]
    if name in _START:
        return "start"
    if name.startswith("Abstract") or room == "sampler":
        return "extending"
    return room if room in _ROOMS else "models" if room == "target" else "start"


def target_of_link(code: str) -> str | None:
    """The public name that a piece of code in a text stands for, such as `Paired(b)` or `ewsg.sample`, or None."""
    match = re.match(r"(?:ewsg\.)?[A-Za-z]\w*(?:\.[A-Za-z]\w*)*", code)
    if match is None or not re.fullmatch(r"(?:\(.*\))?", code[match.end() :]):
        return None
    path = match[0].removeprefix("ewsg.")
    known = path.split(".")[0] in _homes()
    said = match[0].startswith("ewsg.") or "." in path or path[0].isupper()  # `plan` alone may be a variable
    return f"ewsg.{path}" if known and said else None
