"""The order of pages: the directive `pages`, a table of contents without pages that do not exist, and the gallery."""

import re
from pathlib import Path
from typing import Any, ClassVar

from docutils import nodes
from docutils.parsers.rst import directives
from sphinx.application import Sphinx
from sphinx.directives.other import TocTree

_BLOCK = re.compile(r"^```\{pages\}\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def listed(folder: Path) -> set[str]:
    """Every page that some `pages` block of the folder names."""
    blocks = (block for path in folder.glob("*.md") for block in _BLOCK.findall(path.read_text(encoding="utf-8")))
    return {line.strip() for block in blocks for line in block.splitlines() if line.strip() and line[0] != ":"}


class Pages(TocTree):
    """A `toctree` of the pages that exist.

    Options:
        rest: also the pages of the top folder that no other such directive names.
    """

    option_spec: ClassVar = dict(TocTree.option_spec or {}) | {"rest": directives.flag}

    def run(self) -> list[nodes.Node]:
        found = self.env.found_docs
        names = [line.strip() for line in self.content if line.strip() in found]
        if "rest" in self.options:
            known = listed(Path(self.env.srcdir)) | {"index"}
            names += sorted(name for name in found if "/" not in name and name not in known)
        self.content = type(self.content)(names, self.env.docname)
        self.options.setdefault("maxdepth", 1)
        return super().run()


def first_examples_first(filename: str) -> tuple[int, str]:
    """The key by which the gallery is sorted: the examples that explain most, then all others by name."""
    first = ("is_it_hot.py", "error_against_cost.py", "your_own_estimator.py")
    return (first.index(filename) if filename in first else len(first), filename)


def _outside(app: Sphinx, docname: str, source: list[str]) -> None:
    """Links to files of the root lead to the pages that include them."""
    del app
    source[0] = re.sub(
        r"\]\(\.\./(CONTRIBUTING|CHANGELOG|README)\.md", lambda match: f"]({_ROOT_PAGES[match[1]]}.md", source[0]
    )


_ROOT_PAGES = {"CONTRIBUTING": "contributing", "CHANGELOG": "changelog", "README": "index"}


def setup(app: Sphinx) -> dict[str, Any]:
    """Add the directive."""
    app.add_directive("pages", Pages)
    app.connect("source-read", _outside)
    return {"parallel_read_safe": True}
