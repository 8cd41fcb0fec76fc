# The public names of gyrostat.theory. `__init__.py` reads this file and imports a name on first use.

from . import ours as ours
from . import wang2023 as wang2023
from . import xiong2024 as xiong2024
from . import xu2024 as xu2024
from .assessment import Assessment as Assessment
from .assessment import assess as assess
from .condition import Condition as Condition
from .prediction import RULES as RULES
from .prediction import Prediction as Prediction
from .prediction import predict as predict
from .setting import Setting as Setting
