"""Looks at every page of a built site in Chromium: `python tools/site_browser.py site`.

On a telephone (400 px, light) and on a desktop (1,400 px, dark), of every page: no error on the console, no request to
another host, no missing image, nothing wider than the screen, text that stands out from its background; and the search
finds something. tools/site_browser.js does the looking, from inside. Where there is no Chromium, that is said, and is
not a failure.
"""

import functools
import json
import shutil
import subprocess
import sys
import tempfile
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from site_links import pages_of

NAMES = ("chromium", "chromium-browser", "google-chrome")
LOOK = (Path(__file__).with_suffix(".js")).read_text(encoding="utf-8")
SEARCHED = "paired"
TIMEOUT = 300


class Handler(SimpleHTTPRequestHandler):
    """Serves a site with the looking script in every page, and takes the report."""

    plan: dict[str, Any]
    report: list[dict[str, Any]]
    done: threading.Event

    def do_GET(self) -> None:
        """A page of the site, or the one that opens all others in frames."""
        path = self.path.partition("?")[0]
        if path == "/look":
            head = f"<script>window.plan = {json.dumps(self.plan)};{LOOK}</script>"
            self._send(f"<!doctype html><title>look</title>{head}<body></body>")
        elif path.endswith(".html") and (Path(self.directory) / path.lstrip("/")).is_file():
            text = (Path(self.directory) / path.lstrip("/")).read_text(encoding="utf-8")
            self._send(text.replace("<head>", f"<head><script>{LOOK}</script>", 1))
        else:
            super().do_GET()

    def do_POST(self) -> None:
        """The report of the browser."""
        self.report.extend(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        self._send("")
        self.done.set()

    def _send(self, text: str) -> None:
        body = text.encode()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the report does."""


def look(site: Path, browser: str) -> list[dict[str, Any]]:
    """What the browser saw: one dict per view, with its page, width, mode and faults."""
    pages = [str(path.relative_to(site)) for path in pages_of(site)]
    Handler.plan = {"pages": pages, "search": SEARCHED}
    Handler.report, Handler.done = [], threading.Event()
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Handler, directory=str(site)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
        options += ["--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--remote-debugging-port=0"]
        options += ["--disable-background-timer-throttling", "--window-size=1500,1000"]
        process = subprocess.Popen(
            [browser, *options, f"http://127.0.0.1:{server.server_port}/look"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        finished = Handler.done.wait(TIMEOUT)
        process.terminate()
        process.wait(30)
    server.shutdown()
    if not finished:
        raise SystemExit(f"{browser} did not look at all pages within {TIMEOUT} s")
    return Handler.report


if __name__ == "__main__":
    browser = next(filter(None, map(shutil.which, NAMES)), None)
    if browser is None:
        print(f"not looked at in a browser: none of {', '.join(NAMES)} is installed")
        sys.exit(0)
    views = look(Path(sys.argv[1]).resolve(), browser)
    broken = [f"{view['page']} at {view['width']} px: {fault}" for view in views for fault in view["faults"]]
    print(*broken, sep="\n", end="\n" if broken else "")
    print(f"{len(views)} views in {Path(browser).name}, {len(broken)} faults")
    sys.exit(bool(broken) or not views)
