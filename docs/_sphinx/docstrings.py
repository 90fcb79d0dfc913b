"""Docstrings as they are written here, Markdown with Google's sections, turned into what Sphinx reads.

Single backticks are code; paragraphs with wide gaps or a deep indent are
equations, which keep their lines; tables are those of Markdown. Everything else is escaped, so that |x| and a*b stay.
"""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # tests import this file where there is no Sphinx
    from sphinx.application import Sphinx

_SECTION = re.compile(r"^\s*(Args|Attributes|Returns|Yields|Raises|Example|Examples):$")
_ARGUMENT = re.compile(r"^(\s+)(\*{0,2}\w+): (.*)$")
_ITEM = re.compile(r"^(\s*)(- |\d+\. )(.*)$")
_TAG = re.compile(r"\s{4,}(\((?:eq|App|Thm|Alg)[^)]*\)\.?)$")


def convert(lines: list[str]) -> list[str]:
    """The lines of a docstring in reStructuredText, its sections left for napoleon."""
    out: list[str] = []
    section = ""
    for paragraph in _paragraphs(lines):
        if match := _SECTION.match(paragraph[0]):
            section = match[1]
            out.append(paragraph[0])
            paragraph = paragraph[1:]
        if section.startswith("Example"):
            out += paragraph
        elif section in ("Args", "Attributes"):
            out += [_argument(line) for line in paragraph]
        elif section:
            out += [inline(line) for line in paragraph]
        else:
            out += _prose(paragraph)
        out.append("")
    return out


def inline(text: str) -> str:
    """A piece of text: code becomes code or a link, emphasis stays, everything else is escaped."""
    text = re.sub(r"\*\*([^*`]+?)\s*(`[^`]+`)\*\*", r"**\1** \2", text)  # there is no code inside of bold
    pieces = re.split(r"(`[^`]+`)", text)
    return "".join(_code(piece[1:-1]) if piece[:1] == "`" and len(piece) > 2 else _plain(piece) for piece in pieces)


def first_line(value: Any) -> str:
    """The first line of an object's docstring, in reStructuredText."""
    return inline((value.__doc__ or "").strip().partition("\n")[0])


def _paragraphs(lines: list[str]) -> Iterator[list[str]]:
    found: list[str] = []
    for line in lines:
        if not line.strip() or _SECTION.match(line):
            if found:
                yield found
            found = [line] if line.strip() else []
        else:
            found.append(line)
    if found:
        yield found


def _prose(lines: list[str]) -> list[str]:
    if lines[0].lstrip().startswith("|"):
        return _table(lines)
    if _ITEM.match(lines[0]):
        return [_item(line) for line in lines]
    if any("   " in line.strip() for line in lines) or lines[0].startswith("    "):
        return _equation(lines)
    if any(line.startswith("    ") for line in lines):  # each line without indent is followed by its explanation
        return [("  " if line.startswith("    ") else "- ") + inline(line.strip()) for line in lines]
    return [inline(line) for line in lines]


def _equation(lines: list[str]) -> list[str]:
    least = min(len(line) - len(line.lstrip()) for line in lines)
    kept = [_TAG.sub(r"    \1", line[least:]) for line in lines]
    return [".. code-block:: none", "   :class: equation", "", *(f"   {line}" for line in kept)]


def _table(lines: list[str]) -> list[str]:
    rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in lines if set(line) - set(" |-")]
    out = [".. list-table::", "   :header-rows: 1", ""]
    for row in rows:
        out += [f"   {'* -' if k == 0 else '  -'} {inline(cell)}" for k, cell in enumerate(row)]
    return out


def _item(line: str) -> str:
    match = _ITEM.match(line)
    return f"{match[1]}{match[2]}{inline(match[3])}" if match else inline(line)


def _argument(line: str) -> str:
    match = _ARGUMENT.match(line)
    return f"{match[1]}{match[2]}: {inline(match[3])}" if match else inline(line)


def _code(text: str) -> str:
    return f"\\ ``{text}``\\ "  # links.py makes a link of it if it is a public name


def _plain(text: str) -> str:
    """Escaped text in which **bold** and *emphasis* stay what they are."""
    pieces = re.split(r"(\*\*[^*\s][^*]*\*\*|(?<![\w*])\*[A-Za-z][^*]*\*(?![\w*]))", text)
    return "".join(piece if k % 2 else _escaped(piece) for k, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    """Text without markup, not even the lists that a letter and a full stop would begin."""
    return re.sub(r"([\\*|`]|_(?![^\W_])|(?<!\S)\w(?=\.))", r"\\\1", text)


def _process(app: "Sphinx", kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    del app, kind, name, value, options
    lines[:] = convert(lines)


def _mend_types(app: "Sphinx", kind: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    del app, kind, name, value, options
    lines[:] = [_field(line) for line in lines]


def _field(line: str) -> str:
    """A field of napoleon's whose name may end in an underscore, and whose type may have a shape such as "*batch d"."""
    match = re.match(r":(ivar|vartype|param|type) (\w+): ?(.*)$", line)
    if match is None:
        return line
    text = match[3].replace("*", "\\*").replace("jaxtyping.", "") if match[1].endswith("type") else match[3]
    return f":{match[1]} {_escaped(match[2])}: {text}"


def setup(app: "Sphinx") -> dict[str, Any]:
    """Run before napoleon (500), which turns sections into fields and adds types to them, and after it."""
    app.connect("autodoc-process-docstring", _process, priority=400)
    app.connect("autodoc-process-docstring", _mend_types, priority=600)
    return {"parallel_read_safe": True}
