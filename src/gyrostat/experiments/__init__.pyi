# What the author of a paper needs. `__init__.py` reads this file and imports a name on first use.

from .claims import Outcome as Outcome
from .claims import claim as claim
from .experiment import Experiment as Experiment
from .experiment import ExperimentRun as ExperimentRun
from .experiment import experiments_in as experiments_in
from .inequalities import Inequalities as Inequalities
from .inequalities import inequality as inequality
from .old_form import Claim as Claim
from .old_form import together as together
from .old_form import within as within
from .papers import LabPreset as LabPreset
from .papers import Paper as Paper
from .statistics import crossing as crossing
from .statistics import last as last
from .statistics import median as median
from .statistics import share_below as share_below
from .statistics import slope as slope
from .statistics import wilson as wilson
