"""Writes the pages of the reference before Sphinx reads them: one per group of public names (`catalogue.py`)."""

import inspect
from pathlib import Path
from typing import TYPE_CHECKING, Any

import catalogue
from docstrings import first_line, inline

if TYPE_CHECKING:  # tests import this file where there is no Sphinx
    from sphinx.application import Sphinx


def text_of(page: catalogue.Page) -> str:
    """A page: a table of its names, then every one of them."""
    lines = [f".. _reference-{page.slug}:", "", page.title, "=" * len(page.title), "", inline(page.intro), ""]
    lines += _contents(page)
    modules = {f"ewsg.{module}" for module in page.modules}
    shown = ""
    for name in page.names:
        module = name.rpartition(".")[0]
        if module in modules and module != shown:
            shown = module
            lines += [] if page.title == module else [module, "-" * len(module), ""]
            lines += [f".. automodule:: {module}", "   :no-members:", ""]
        lines += _entry(name)
    return "\n".join(lines) + "\n"


def _contents(page: catalogue.Page) -> list[str]:
    lines = [".. list-table::", "   :class: contents-of-page", "   :widths: auto", ""]
    for name in page.names:
        lines += [f"   * - :py:obj:`{_shown(name)} <{name}>`", f"     - {_summary(name)}"]
    return [*lines, ""]


def _shown(name: str) -> str:
    return name.rpartition(".")[2] if name.startswith("ewsg.result.") else name.removeprefix("ewsg.")


def _summary(name: str) -> str:
    value = catalogue.resolve(name)
    return first_line(value) if isinstance(value, type) or inspect.isroutine(value) else "A type, for annotations."


def _entry(name: str) -> list[str]:
    value = catalogue.resolve(name)
    if isinstance(value, type):
        kind = "exception" if issubclass(value, BaseException) else "class"
        return [f".. auto{kind}:: {name}", *_members(value), ""]
    return [f".. auto{'function' if callable(value) and inspect.isroutine(value) else 'data'}:: {name}", ""]


def _members(cls: type) -> list[str]:
    """The methods and properties to document: public, with a docstring, and not an answer to a role of a base class."""
    inherited = {name for base in cls.__mro__[1:-1] for name in vars(base)}
    own = [name for name in vars(cls) if not name.startswith("_") and name not in inherited]
    fields = {*getattr(cls, "_fields", ()), *getattr(cls, "__dataclass_fields__", ())}
    members = [name for name in own if name not in fields and getattr(cls, name).__doc__]
    return [f"   :members: {', '.join(members)}"] if members else []


def _write(app: "Sphinx") -> None:
    folder = Path(app.srcdir) / "reference"
    folder.mkdir(exist_ok=True)
    pages = catalogue.pages()
    index = ["Reference", "=========", "", "Every public name of ``ewsg``, from its docstring.", ""]
    index += [".. list-table::", "   :class: contents-of-page", "   :widths: auto", ""]
    for page in pages:
        index += [f"   * - :ref:`reference-{page.slug}`", f"     - {inline(page.intro) or 'See its page.'}"]
    index += ["", ".. toctree::", "   :hidden:", "", *(f"   {page.slug}" for page in pages), ""]
    texts = {page.slug: text_of(page) for page in pages} | {"index": "\n".join(index)}
    for old in folder.glob("*.rst"):
        if old.stem not in texts:
            old.unlink()
    for slug, text in texts.items():
        path = folder / f"{slug}.rst"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def setup(app: "Sphinx") -> dict[str, Any]:
    """Write before the pages are looked for."""
    app.connect("builder-inited", _write, priority=100)
    return {"parallel_read_safe": True}
