"""DataFrames and columns of pandas and polars as NumPy arrays, without importing either."""

from typing import Any

import numpy as np

from ..errors import InputError, first_line

_NUMERIC = "biuf"


def is_frame(value: Any) -> bool:
    """Whether the value is a table with named columns, each with a dtype of its own."""
    return hasattr(value, "columns") and hasattr(value, "dtypes") and hasattr(value, "to_numpy")


def is_nullable(value: Any) -> bool:
    """Whether the value is a column whose dtype is not NumPy's: pandas's Int64, boolean, category, a polars column."""
    return hasattr(value, "to_numpy") and hasattr(value, "dtype") and not isinstance(value.dtype, np.dtype)


def as_matrix(name: str, frame: Any) -> np.ndarray:
    """The columns side by side in the smallest dtype that holds them all, such as float64 for bool and float64."""
    columns = _columns(frame)
    others = [str(label) for label, column in columns if not _is_numeric(column)]
    if others:
        listing = ", ".join(others[:5]) + (", ..." if len(others) > 5 else "")
        raise InputError(f"{name} must have numeric columns only: encode or drop {listing}")
    if not columns:
        raise InputError(f"{name} must have at least one column: the table is empty")
    dtypes = {_numpy_dtype(column) for _, column in columns}
    if len(dtypes) == 1 and all(isinstance(column.dtype, np.dtype) for _, column in columns):
        return np.asarray(frame)  # often no copy
    matrix = np.empty((len(frame), len(columns)), np.result_type(*dtypes))
    for number, (label, column) in enumerate(columns):
        matrix[:, number] = _values(f"column {label} of {name}", column)
    return matrix


def nullable_values(name: str, column: Any) -> np.ndarray:
    """A column whose dtype is not NumPy's, as numbers."""
    if not _is_numeric(column):
        raise InputError(f"{name} must be numbers, not {column.dtype}: encode categories as integers")
    return _values(name, column)


def _columns(frame: Any) -> list[tuple[Any, Any]]:
    if hasattr(frame, "items"):  # pandas
        return list(frame.items())
    return [(column.name, column) for column in frame.get_columns()]


def _is_numeric(column: Any) -> bool:
    dtype = column.dtype
    if hasattr(dtype, "kind"):
        return dtype.kind in _NUMERIC
    return str(dtype) == "Boolean" or bool(getattr(dtype, "is_numeric", bool)())


def _numpy_dtype(column: Any) -> np.dtype:
    """The NumPy dtype that holds a column; float64 if values are missing, or its library names none."""
    if isinstance(column.dtype, np.dtype):
        return column.dtype
    has_holes = hasattr(column, "isna") and bool(column.isna().any())
    return np.dtype(np.float64 if has_holes else getattr(column.dtype, "numpy_dtype", np.float64))


def _values(name: str, column: Any) -> np.ndarray:
    """The numbers of a column; missing values become NaN, for which an error is raised later."""
    dtype = _numpy_dtype(column)
    if isinstance(column.dtype, np.dtype):
        return np.asarray(column)
    holes = {"na_value": np.nan} if dtype.kind == "f" else {}
    try:
        return np.asarray(column.to_numpy(dtype=dtype, **holes))
    except TypeError:  # polars takes no such arguments
        return np.asarray(column.to_numpy()).astype(dtype)
    except ValueError as error:
        raise InputError(f"{name} must be an array of numbers ({first_line(error)})") from error
