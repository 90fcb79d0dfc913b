"""Run the first Python block of a Markdown file exactly as printed: `readme_example.py README.md`."""

import contextlib
import re
import sys
import tempfile
from pathlib import Path


def first_example(text: str) -> str:
    """The first Python block, preceded by as many empty lines as there are lines above it in `text`.

    A traceback then names the line of the file that the reader sees.
    """
    block = re.search(r"^```python\n(.*?)^```$", text, re.DOTALL | re.MULTILINE)
    if block is None:
        raise SystemExit("no ```python block found")
    return "\n" * text.count("\n", 0, block.start(1)) + block[1]


if __name__ == "__main__":
    path = Path(sys.argv[1]).resolve()
    code = compile(first_example(path.read_text(encoding="utf-8")), path, "exec")
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        exec(code, {"__name__": "__main__"})
