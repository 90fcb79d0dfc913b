r"""Data files as regressions: `ewsg.files.read(path, outcome)`, and the command `ewsg sample`.

Example:
    >>> import pathlib, tempfile, ewsg
    >>> path = pathlib.Path(tempfile.mkdtemp(), "doses.csv")
    >>> _ = path.write_text("dose,cured\n1,no\n2,yes\n3,no\n4,yes\n")
    >>> table = ewsg.files.read(path, "cured")
    >>> table.encoding.outcome.classes, table.target().num_data
    (('no', 'yes'), 4)
"""

from .checking import Findings, check
from .coefficients import Coefficients, coefficients
from .encoding import Encoding
from .reading import encode, read
from .table import Table

__all__ = ["Coefficients", "Encoding", "Findings", "Table", "check", "coefficients", "encode", "read"]
