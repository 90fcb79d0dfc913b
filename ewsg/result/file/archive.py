"""The file of a saved run: a zip archive of numbered arrays and a header that describes them.

NumPy opens it as an `.npz` file. Nothing is compressed, so that no file takes more memory than disk. The header
promises dtype, shape and checksum of every array; these, and the sizes of all members, are compared before any array
is read.
"""

import json
import math
import os
import zipfile
from collections.abc import Callable, Sequence
from typing import Any, BinaryIO

import jax.numpy as jnp
import numpy as np

from ...errors import InputError

_HEADER = "header.npy"
_MOST_HEADER_BYTES = 64 * 2**20
_CHUNK_BYTES = 16 * 2**20
_MOST_AXES = 32
_NAMES = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float16", "float32"),
    *("float64", "complex64", "complex128", "int4", "uint4", "bfloat16", "float8_e4m3b11fnuz", "float8_e4m3fn"),
    *("float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e3m4", "float8_e4m3", "float8_e8m0fnu"),
)
DTYPES: dict[str, np.dtype] = {name: np.dtype(getattr(jnp, name)) for name in _NAMES if hasattr(jnp, name)}
"""The dtypes that a file can hold, by name."""


def write(file: BinaryIO, header: dict[str, Any], arrays: Sequence[np.ndarray]) -> None:
    """Write the archive to an empty file."""
    checksums = []
    with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
        for i, array in enumerate(arrays):
            checksums.append(_add(archive, f"{i}.npy", array.view(_plain(array.dtype))))
        text = json.dumps(header | {"checksums": checksums}).encode()
        if len(text) > _MOST_HEADER_BYTES - _CHUNK_BYTES:
            raise InputError("the run has too many arrays to be saved: join its parameters into fewer, larger arrays")
        _add(archive, _HEADER, np.frombuffer(text, np.uint8))


def promise(array: np.ndarray) -> dict[str, Any]:
    """The header's entry for an array: its dtype and shape."""
    return {"dtype": str(array.dtype), "shape": list(array.shape)}


def read(file: BinaryIO, check: Callable[[Any], None]) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The header, and the arrays in order; raises one of many exceptions if the file is damaged.

    Args:
        file: the file.
        check: called with the header before anything else is read; raises an exception if the header is not valid.
    """
    size = os.fstat(file.fileno()).st_size
    with zipfile.ZipFile(file) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if len(members) != len(archive.infolist()) or any(_is_packed(info) for info in members.values()):
            raise ValueError("members that are compressed, encrypted or of the same name")
        if sum(info.file_size for info in members.values()) > size:
            raise ValueError("members that overlap")
        header = _read_header(archive, members.pop(_HEADER))
        check(header)
        promises = header["arrays"]
        if set(members) != {f"{i}.npy" for i in range(len(promises))}:
            raise ValueError("arrays are missing, or there are too many")
        infos = [members[f"{i}.npy"] for i in range(len(promises))]
        if [info.CRC for info in infos] != header["checksums"]:
            raise ValueError("the arrays are not those of this header")
        return header, [_read_array(archive, *pair) for pair in zip(infos, promises, strict=True)]


def check_promises(promises: Any) -> None:
    """Raise ValueError unless these are entries that `promise` could have made."""
    if not isinstance(promises, list):
        raise ValueError("no list of arrays")
    for entry in promises:
        if set(entry) != {"dtype", "shape"} or entry["dtype"] not in DTYPES:
            raise ValueError("an array of no known dtype")
        shape = entry["shape"]
        if not isinstance(shape, list) or len(shape) > _MOST_AXES:
            raise ValueError("an array without a shape")
        if not all(type(length) is int and 0 <= length < 2**63 for length in shape):
            raise ValueError("an array without a shape")


def _is_packed(info: zipfile.ZipInfo) -> bool:
    encrypted = info.flag_bits & 1
    return info.compress_type != zipfile.ZIP_STORED or info.compress_size != info.file_size or bool(encrypted)


def _plain(dtype: np.dtype) -> np.dtype:
    """The dtype itself if NumPy's format has it; for others (bfloat16), unsigned integers of the same size."""
    return np.dtype(f"u{dtype.itemsize}") if dtype.isbuiltin == 2 else dtype


def _add(archive: zipfile.ZipFile, name: str, array: np.ndarray) -> int:
    """Write one member and return its checksum."""
    info = zipfile.ZipInfo(name)
    with archive.open(info, "w", force_zip64=True) as member:
        np.lib.format.write_array(member, np.asarray(array, order="C"), version=(1, 0), allow_pickle=False)
    return info.CRC


def _read_header(archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> Any:
    if info.file_size > _MOST_HEADER_BYTES:
        raise ValueError("the header is too long")
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError("the header has another format")
        np.lib.format.read_array_header_1_0(member)
        return json.loads(member.read())


def _read_array(archive: zipfile.ZipFile, info: zipfile.ZipInfo, promised: dict[str, Any]) -> np.ndarray:
    """One array, after its own header and its size have been compared with what the header promises."""
    dtype, shape = DTYPES[promised["dtype"]], tuple(promised["shape"])
    num_bytes = math.prod(shape) * dtype.itemsize
    with archive.open(info) as member:
        if np.lib.format.read_magic(member) != (1, 0):
            raise ValueError("an array has another format")
        if np.lib.format.read_array_header_1_0(member) != (shape, False, _plain(dtype)):
            raise ValueError("an array has another shape or dtype")
        if info.file_size - member.tell() != num_bytes:
            raise ValueError("an array has another size")
        array = np.empty(shape, dtype)
        room = array.reshape(-1).view(np.uint8)
        for start in range(0, num_bytes, _CHUNK_BYTES):
            chunk = member.read(min(_CHUNK_BYTES, num_bytes - start))
            room[start : start + _CHUNK_BYTES] = np.frombuffer(chunk, np.uint8)
        if member.read():  # to the end, where the checksum is compared
            raise ValueError("an array has another size")
        return array
