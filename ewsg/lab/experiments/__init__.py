"""The paper's figures and tables, one experiment per file: `ewsg reproduce NAME`."""

from .catalogue import EXPERIMENTS
from .running import reproduce, reproduce_all

__all__ = ["EXPERIMENTS", "reproduce", "reproduce_all"]
