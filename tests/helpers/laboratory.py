"""The surroundings of an experiment."""

from unittest import mock

from rich.console import Console

from ewsg.lab.experiments import experiment as base
from ewsg.lab.folder import Folder


def work(folder, **settings):
    return base.Work(Folder(folder, "test"), settings, mock.Mock(spec=Console))
