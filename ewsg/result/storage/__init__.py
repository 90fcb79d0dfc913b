"""Runs on disk: one zip file of arrays (`.npz`) with a JSON header, written atomically, never pickled."""

from .runs import SavedRun, check_writable, load, read, write

__all__ = ["SavedRun", "check_writable", "load", "read", "write"]
