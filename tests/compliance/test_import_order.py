"""Imports point down the house: read off the syntax trees, lazy imports and those of type checkers included."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import ewsg

PACKAGE = Path(ewsg.__file__).parent
FLOORS = (
    {"errors"},
    {"_core"},
    {"_random"},
    {"modules", "schedules", "interface"},
    {"target"},
    {"tree", "random", "coordinates"},  # public faces of `_core`, `_random` and `target`
    {"models", "estimators", "integrators", "datasets"},
    {"sampler"},
    {"kernels", "recipes", "collect"},
    {"prediction"},
    {"_engine"},
    {"result"},
    {"planning"},
    {"sampling"},
    {"diagnostics", "reference", "theory"},
    {"files", "sklearn", "problems"},
    {"lab"},
    {"cli"},
)
"""From the ground up. A room imports from lower floors, and from itself; rooms on one floor do not know each other."""
NEIGHBOURS = {("recipes", "kernels"), ("reference", "diagnostics")}
"""(importer, imported) on one floor, where the second knows nothing of the first."""
LEVEL = {room: level for level, rooms in enumerate(FLOORS) for room in rooms}
MODULES = {
    ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted(PACKAGE.rglob("*.py"))
}


def imported(module: str) -> Iterator[tuple[str, int]]:
    """(module of this package, line) for every import in a file, wherever it stands."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            parents = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*parents, *([node.module] if node.module else [])])
            names = [f"{base}.{alias.name}" for alias in node.names]
        else:
            continue
        for name in names:
            if name.split(".")[0] == "ewsg":
                yield (name if name in MODULES else name.rpartition(".")[0] or name), node.lineno


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def runtime_imports(module: str) -> set[str]:
    """The modules that are imported when this one is."""
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    hidden = {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test))
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    return {name for name, line in imported(module) if line not in hidden}


def test_every_room_has_a_floor():
    assert {room(module) for module in MODULES} - {""} == set(LEVEL)


@pytest.mark.parametrize("name", sorted(LEVEL))
def test_imports_point_down(name):
    wrong = [
        f"{module}:{line} imports {other}"
        for module in MODULES
        if room(module) == name
        for other, line in imported(module)
        if room(other) not in ("", name) and LEVEL[room(other)] >= LEVEL[name] and (name, room(other)) not in NEIGHBOURS
    ]
    assert not wrong


def test_only_the_command_line_opens_the_lab():
    inside = {room(module) for module in MODULES for other, _ in imported(module) if room(other) == "lab"}
    assert inside <= {"lab", "cli"}


def test_no_cycle():
    """Neither between modules when they are imported, nor hidden by importing one's own package inside a function."""
    graph = {module: runtime_imports(module) & MODULES.keys() for module in MODULES}
    done: set[str] = set()

    def visit(module: str, above: tuple[str, ...]) -> None:
        assert module not in above, " -> ".join([*above[above.index(module) :], module])
        if module in done:
            return
        for other in sorted(graph[module]):
            if not module.startswith(f"{other}."):  # a package is not imported from its own rooms
                visit(other, (*above, module))
        done.add(module)

    for module in MODULES:
        visit(module, ())


def test_lazy_imports_of_our_own_are_the_command_lines():
    """A command imports what it needs when it is called, so that `ewsg --help` is quick; nobody else may."""
    lazy = {
        f"{module} imports {other}"
        for module in MODULES
        if room(module) not in ("", "cli")
        for other in {name for name, _ in imported(module)} - runtime_imports(module)
        if not _for_type_checkers(module, other)
    }
    assert not lazy


def _for_type_checkers(module: str, other: str) -> bool:
    tree = ast.parse(MODULES[module].read_text(encoding="utf-8"))
    lines = {line for name, line in imported(module) if name == other}
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)]
    return all(any(block.lineno <= line <= (block.end_lineno or 0) for block in blocks) for line in lines)


def test_the_picture_in_contributing_is_true():
    text = (PACKAGE.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    picture = text.partition("## The house")[2].partition("```\n")[2].partition("```")[0]
    floors = [{name.rstrip("/") for name in line[:54].split()} for line in picture.splitlines()]
    assert floors == list(FLOORS)
