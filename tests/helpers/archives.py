"""Saved runs, taken apart and put together again."""

import io
import json
import zipfile

import numpy as np


def members(content):
    """The arrays of a file as they are stored, and its header."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        stored = {info.filename: archive.read(info) for info in archive.infolist()}
    header = np.load(io.BytesIO(stored.pop("header.npy")))
    return stored, json.loads(header.tobytes())


def assemble(stored, header=None, compression=zipfile.ZIP_STORED):
    """A file with right checksums of whatever it holds."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, value in stored.items():
            archive.writestr(name, value)
        if header is not None:
            text = io.BytesIO()
            np.save(text, np.frombuffer(json.dumps(header).encode(), np.uint8))
            archive.writestr("header.npy", text.getvalue())
    return buffer.getvalue()
