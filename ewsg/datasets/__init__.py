"""The data sets of the experiments: `load(name)` gives a `Table` of numpy arrays, values as published.

A file is looked for in `$EWSG_DATA`, then in the user's cache, and is fetched from its publisher if it is in
neither; its checksum is always verified. No data set is shipped with the library.

Example:
    >>> import ewsg
    >>> table = ewsg.datasets.load("pima")
    >>> table.features.shape
    (768, 8)
"""

from .loading import Table, load, locations, names
from .preparation import standardize, train_test_split
from .storage import search_path

__all__ = ["Table", "load", "locations", "names", "search_path", "standardize", "train_test_split"]
