# The public names of gyrostat.theory.ours. `__init__.py` reads this file and imports a name on first use.

from .amplified_heterogeneity import amplification_limit as amplification_limit
from .amplified_heterogeneity import amplified as amplified
from .amplified_heterogeneity import critical_amplification as critical_amplification
from .final_error import amplified_error_law as amplified_error_law
from .final_error import error_law as error_law
from .surrogate_model import surrogate as surrogate
from .transition import critical_spread as critical_spread
from .transition import effective_step as effective_step
from .transition import eliminated_by_lyapunov as eliminated_by_lyapunov
from .transition import lyapunov_exponent as lyapunov_exponent
