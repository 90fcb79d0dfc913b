"""`run.report(path)` and `ewsg report`: a run on one page of HTML that needs nothing else."""

from .page import page, write_page

__all__ = ["page", "write_page"]
