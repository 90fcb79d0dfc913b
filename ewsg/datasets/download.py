"""Fetching a file from its publisher into the user's cache, in our layout."""

import gzip
import io
import logging
import tempfile
import zipfile
from pathlib import Path

from .._core.optional import require
from ..errors import DataNotFound, InputError
from .registry import File
from .storage import find, is_gzip, keep, read, search_path, unpack

_TIMEOUT_SECONDS = 30
_FAILURES = (OSError, ValueError, KeyError, ImportError, zipfile.BadZipFile)

_logger = logging.getLogger(__name__)


def obtain(name: str, file: File, download: bool) -> tuple[bytes, str]:
    """A file of the data set `name`, found or downloaded: its bytes as stored, and where they come from."""
    path = find(file)
    if path is not None:
        return read(path), str(path)
    if not file.urls:
        raise _missing(name, file, "no publisher offers it for download")
    if not download:
        raise _missing(name, file, "downloads were not allowed")
    return _download(name, file)


def _download(name: str, file: File) -> tuple[bytes, str]:
    """The file from the first address that gives the right content; nothing else reaches the cache."""
    failures = []
    for url in file.urls:
        try:
            stored = _normalize(file, _fetch(url), url)
        except _FAILURES as error:
            _logger.info("download of %s failed", url, exc_info=True)
            failures.append((url, error))
        else:
            keep(file, stored)
            return stored, url
    url, error = failures[0]
    raise _missing(name, file, f"its download from {url} failed ({_reason(error)})") from error


def _fetch(url: str) -> bytes:
    """The bytes at an address.

    Not by `pooch.retrieve`, which would verify the archive and not its content: publishers repack archives at will.
    """
    pooch = require("pooch", extra="data")
    _logger.info("downloading %s", url)
    with tempfile.TemporaryDirectory() as folder:
        target = Path(folder) / "download"
        # stream=False closes the connection also when the server answers with an error
        pooch.HTTPDownloader(timeout=_TIMEOUT_SECONDS, stream=False)(url, str(target), None)
        return target.read_bytes()


def _normalize(file: File, downloaded: bytes, url: str) -> bytes:
    """The verified bytes to store: taken out of a zip archive, and compressed if our layout says so."""
    if downloaded.startswith(b"PK"):
        with zipfile.ZipFile(io.BytesIO(downloaded)) as archive:
            downloaded = archive.read(file.member)
    content = unpack(file, downloaded, url)
    if not file.path.endswith(".gz"):
        return content
    return downloaded if is_gzip(downloaded) else gzip.compress(content, mtime=0)


def _reason(error: Exception) -> str:
    """Why a download failed, in a few words; the exception's cause has the details."""
    if isinstance(error, ImportError):
        return "the package pooch is not installed; pip install 'ewsg[data]' installs it"
    if isinstance(error, InputError):
        return "the file there is not the published one"
    text = str(error)
    return f"{type(error).__name__}: {text}" if 0 < len(text) < 120 else type(error).__name__


def _missing(name: str, file: File, reason: str) -> DataNotFound:
    """The one sentence that says which file to put where."""
    destination = search_path()[0] / file.path
    return DataNotFound(
        f"the data set {name!r} needs the file {str(destination)!r}, and {reason}: "
        f"put {file.description} there, gzipped or not"
    )
