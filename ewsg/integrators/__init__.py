"""How to move: discretised Langevin dynamics."""

from .base import ForceFunction as ForceFunction, Phase as Phase
from .friction import AbstractFriction as AbstractFriction, AbstractLangevin as AbstractLangevin
from .public import *
