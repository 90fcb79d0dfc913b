"""A real browser that opens a page at several widths: Chromium without a window."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

_NAMES = ("chromium", "chromium-browser", "google-chrome")
_SCHEMES = {"dark": 0, "light": 1}
_MEASURE = """
addEventListener("load", () => setTimeout(() => {
  const found = [...document.querySelectorAll("iframe")].map(frame => {
    const page = frame.contentDocument, root = page.documentElement;
    const all = names => [...page.querySelectorAll(names)];
    const box = element => element.getBoundingClientRect();
    const style = element => frame.contentWindow.getComputedStyle(element);
    return {
      width: frame.clientWidth,
      overflow: root.scrollWidth - root.clientWidth,
      images: all("svg").map(svg => [box(svg).width, box(svg).height, svg.querySelectorAll("path").length]),
      outside: all("p, li, h1, h2, figure, pre").filter(one => box(one).right > root.clientWidth + 1).length,
      letters: Math.min(...all("p, li, td, th, pre").map(one => parseFloat(style(one).fontSize))),
      text: style(page.body).color,
      paper: style(page.body).backgroundColor,
      axes: all("svg path[style*='stroke: currentColor']").slice(0, 1).map(one => style(one).stroke)[0],
    };
  });
  const shown = document.createElement("output");
  shown.textContent = JSON.stringify(found);
  document.body.append(shown);
}, 50));
"""


def chromium() -> str:
    """The browser on the PATH; skips the test where there is none."""
    found = next((path for path in map(shutil.which, _NAMES) if path), None)
    if found is None:
        pytest.skip(f"no browser on the PATH (one of {', '.join(_NAMES)}): tools/browser.sh installs one")
    return found


def framed(pages: list[str], widths: list[int], height: int = 3000) -> str:
    """A page that shows others side by side, each at each width: a window cannot be narrower than 500 pixels."""
    frames = "".join(
        f'<iframe srcdoc="{html.escape(page)}" style="border:0;width:{width}px;height:{height}px"></iframe>'
        for page in pages
        for width in widths
    )
    return f'<!DOCTYPE html><meta charset="utf-8"><body style="margin:0">{frames}<script>{_MEASURE}</script>'


def opened(path: Path, scheme: str, *options: str) -> subprocess.CompletedProcess[str]:
    """What the browser says and writes when it opens a file in a colour scheme, "light" or "dark"."""
    command = [
        chromium(),
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--hide-scrollbars",
        "--disable-dev-shm-usage",
        "--host-resolver-rules=MAP * ~NOTFOUND",
        f"--user-data-dir={path.parent / 'profile'}",
        f"--blink-settings=preferredColorScheme={_SCHEMES[scheme]}",
        "--enable-logging=stderr",
        "--virtual-time-budget=3000",
        *options,
        path.as_uri(),
    ]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)


def measured(pages: list[str], widths: list[int], scheme: str, folder: Path) -> tuple[list[dict], list[str]]:
    """(one measurement for each page at each width, what the browser's console says)."""
    path = folder / f"{scheme}.html"
    path.write_text(framed(pages, widths), encoding="utf-8")
    result = opened(path, scheme, "--dump-dom")
    output = re.search(r"<output>(.*?)</output>", result.stdout, re.DOTALL)
    assert output is not None, result.stderr
    console = [line for line in result.stderr.splitlines() if "CONSOLE" in line]
    return json.loads(html.unescape(output[1])), console
