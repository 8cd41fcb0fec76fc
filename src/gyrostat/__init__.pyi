# The public names and their homes. `gyrostat/__init__.py` reads this file and imports a name on first use.

from . import diagnostics as diagnostics
from . import engine as engine
from . import environments as environments
from . import errors as errors
from . import estimators as estimators
from . import experiments as experiments
from . import figures as figures
from . import measurements as measurements
from . import models as models
from . import sources as sources
from . import sweeps as sweeps
from . import tables as tables
from . import theory as theory
from . import torch as torch
from .algorithms import batches as batches
from .algorithms import events as events
from .algorithms import rules as rules
from .algorithms import schedules as schedules
from .algorithms import starts as starts
from .algorithms.algorithm import Algorithm as Algorithm
from .algorithms.named_algorithms import GradientDescent as GradientDescent
from .algorithms.named_algorithms import HeteroSGD as HeteroSGD
from .algorithms.named_algorithms import PooledGD as PooledGD
from .algorithms.named_algorithms import PooledSGD as PooledSGD
from .algorithms.named_algorithms import PrecGD as PrecGD
from .algorithms.named_algorithms import QuadraticNetworkSGD as QuadraticNetworkSGD
from .algorithms.named_algorithms import RidgeDescent as RidgeDescent
from .algorithms.named_algorithms import ScaledGD as ScaledGD
from .diagnostics import diagnostic as diagnostic
from .engine.run import run as run
from .engine.run import run_grid as run_grid
from .engine.summary import summary as summary
from .environments import Environments as Environments
from .environments import Finite as Finite
from .environments import Gaussian as Gaussian
from .environments import Observed as Observed
from .environments import RandomEnvironments as RandomEnvironments
from .environments import RectangularEnvironments as RectangularEnvironments
from .environments import TwoPoint as TwoPoint
from .environments import Uniform as Uniform
from .environments import VectorEnvironments as VectorEnvironments
from .environments import laws as laws
from .errors import GyrostatError as GyrostatError
from .estimators.invariant.diagnosis import heterogeneity as heterogeneity
from .figures.result_plot import plot as plot
from .measurements import Dense as Dense
from .measurements import DenseData as DenseData
from .measurements import Entries as Entries
from .measurements import FixedGaussian as FixedGaussian
from .measurements import FreshGaussian as FreshGaussian
from .measurements import Identity as Identity
from .measurements import RankOne as RankOne
from .measurements.problem import Problem as Problem
from .models import Asymmetric as Asymmetric
from .models import DeepLinear as DeepLinear
from .models import Diagonal as Diagonal
from .models import Model as Model
from .models import Symmetric as Symmetric
from .reproduce.load_results import load_results as load_results
from .sweeps import sweep as sweep

NAMESPACES: tuple[str, ...]
__all__: list[str]
__version__: str

def places() -> dict[str, str]: ...
def public(name: str) -> object: ...
