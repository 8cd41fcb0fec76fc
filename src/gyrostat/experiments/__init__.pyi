# What the author of a paper needs. `__init__.py` reads this file and imports a name on first use.

from .declarations import Claim as Claim
from .declarations import Experiment as Experiment
from .declarations import LabPreset as LabPreset
from .declarations import Outcome as Outcome
from .declarations import Paper as Paper
from .declarations import together as together
from .declarations import within as within
from .statistics import crossing as crossing
from .statistics import last as last
from .statistics import median as median
from .statistics import share_below as share_below
from .statistics import slope as slope
from .statistics import wilson as wilson
