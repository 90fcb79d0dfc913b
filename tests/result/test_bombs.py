"""Small files that promise to be large: refused in one sentence, with little memory."""

import io
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from archives import assemble, members

import ewsg
from ewsg.errors import FileFormatError


def packed(content, name):
    """A member of 200 MB, which take 200 kB when they are compressed."""
    stored, header = members(content)
    stored.pop(name, None)
    buffer = io.BytesIO(assemble(stored, None if name == "header.npy" else header))
    with zipfile.ZipFile(buffer, "a", zipfile.ZIP_DEFLATED) as archive, archive.open(name, "w") as member:
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (50_000_000,)})
        for _ in range(200):
            member.write(bytes(1_000_000))
    return buffer.getvalue()


def lying_directory(content):
    """The directory says that the first array has 4 GB."""
    changed = bytearray(content)
    struct.pack_into("<II", changed, content.index(b"PK\x01\x02") + 20, 0xFFFFFF00, 0xFFFFFF00)
    return bytes(changed)


def lying_shapes(content):
    """The draws are promised to have 8 TB, by the header and by themselves."""
    stored, header = members(content)
    for i in range(2):
        member, shape = io.BytesIO(), (2, 2**40)
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": shape})
        stored[f"{i}.npy"] = member.getvalue() + bytes(40)
        header["arrays"][i]["shape"] = list(shape)
        header["checksums"][i] = zlib.crc32(stored[f"{i}.npy"])
    return assemble(stored, header)


def overlapping(_):
    """A thousand members that are the same million bytes."""
    content = assemble({"00000": bytes(1_000_000)})
    start, end = content.index(b"PK\x01\x02"), content.index(b"PK\x05\x06")
    entries = [content[start : start + 46] + f"{i:05}".encode() for i in range(1000)]
    tail = bytearray(content[end:])
    struct.pack_into("<HHI", tail, 8, 1000, 1000, 1000 * (end - start))
    return content[:start] + b"".join(entries) + bytes(tail)


def deep_header(content):
    stored, _ = members(content)
    text = io.BytesIO()
    np.save(text, np.frombuffer(b"[" * 2_000_000, np.uint8))
    return assemble(stored | {"header.npy": text.getvalue()})


BOMBS = {
    "compressed array": lambda content: packed(content, "0.npy"),
    "compressed header": lambda content: packed(content, "header.npy"),
    "lying directory": lying_directory,
    "lying shapes": lying_shapes,
    "overlapping members": overlapping,
    "deep header": deep_header,
}


@pytest.mark.parametrize("bomb", BOMBS)
def test_a_small_file_takes_little_memory(whole, tmp_path, bomb):
    """Seen before: 2 MB took 2.1 GB and 19 seconds."""
    path = tmp_path / "run.npz"
    path.write_bytes(BOMBS[bomb](whole[1]))
    assert path.stat().st_size < 3e6
    tracemalloc.start()
    try:
        with pytest.raises(FileFormatError, match="not a complete file"):
            ewsg.load(path)
        assert tracemalloc.get_traced_memory()[1] < 30e6
    finally:
        tracemalloc.stop()
