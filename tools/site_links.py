"""Follows every link of a built site: `python tools/site_links.py site`. Says what is broken, and fails if anything is.

A link within the site must lead to a file and, with a fragment, to an element of it. Nothing that a browser loads by
itself (images, scripts, styles) may be elsewhere. Links to other sites are not followed.
"""

import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {"img": "src", "script": "src", "link": "href", "source": "src", "iframe": "src"}
NOT_LOADED = {"canonical", "next", "prev", "search", "index", "genindex", "author"}
"""Kinds of `link` that only point somewhere."""


class Page(HTMLParser):
    """The links of a page, what it loads by itself, and the names that a fragment can have in it."""

    def __init__(self, path: Path):
        super().__init__()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.names = {"", "top"}
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note the links and the name of an element."""
        found = {name: value or "" for name, value in attrs}
        self.names |= {found[name] for name in ("id", "name") if name in found}
        if tag == "a" and "href" in found:
            self.links.append(found["href"])
        if tag in LOADED and LOADED[tag] in found and not set(found.get("rel", "").split()) & NOT_LOADED:
            self.loads.append(found[LOADED[tag]])
        self.loads += [part.split()[0] for part in found.get("srcset", "").split(",") if part.strip()]


def faults(site: Path) -> list[str]:
    """One line for every link that leads nowhere and everything that would be loaded from elsewhere."""
    pages = {path.resolve(): Page(path) for path in pages_of(site)}
    found = []
    for path, page in pages.items():
        shown = path.relative_to(site.resolve())
        found += [f"{shown}: loads {link}" for link in page.loads if _is_elsewhere(link)]
        for link in dict.fromkeys([*page.links, *page.loads]):
            if not _is_elsewhere(link) and (wrong := _wrong(path, link, pages)):
                found.append(f"{shown}: {link}: {wrong}")
    for path in sorted(site.rglob("*.css")):
        links = re.findall(r"(?:@import\s+(?:url\()?|url\()\s*[\"']?([^\"')\s;]+)", path.read_text(encoding="utf-8"))
        found += [f"{path.relative_to(site)}: loads {link}" for link in links if _is_elsewhere(link)]
    return found


def pages_of(site: Path) -> list[Path]:
    """The pages of a site; the theme keeps templates in _static."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.relative_to(site).parts]


def _is_elsewhere(link: str) -> bool:
    parts = urlsplit(link)
    return bool(parts.scheme or parts.netloc) and parts.scheme != "data"


def _wrong(path: Path, link: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme == "data":
        return ""
    to = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if to.is_dir():
        to /= "index.html"
    if not to.is_file():
        return "no such file"
    if to in pages and unquote(parts.fragment) not in pages[to].names:
        return "no such place in the page"
    return ""


if __name__ == "__main__":
    site = Path(sys.argv[1])
    broken = faults(site)
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{len(pages_of(site))} pages, {len(broken)} broken links")
    sys.exit(bool(broken))
