"""Writes docs/reproduction.md and its figures from the folder that `ewsg reproduce --all --out FOLDER` left."""

import shutil
import sys
from pathlib import Path

from ewsg.lab.experiments import report

DOCS = Path(__file__).parents[1] / "docs"
IMAGES = Path("images", "reproduction")

if __name__ == "__main__":
    folder = Path(sys.argv[1])
    for figure in folder.glob("*/*.png"):
        to = DOCS / IMAGES / figure.parent.name / figure.name
        to.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(figure, to)
    print(f"wrote {report.write(folder, DOCS / 'reproduction.md', IMAGES)}")
