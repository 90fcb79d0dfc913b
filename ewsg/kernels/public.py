"""The names that `ewsg` and this room share, one line each."""

from .corrected_barker import CorrectedBarker as CorrectedBarker
from .flymc import FlyMC as FlyMC
from .nuts import NUTS as NUTS
from .random_walk import RandomWalk as RandomWalk
