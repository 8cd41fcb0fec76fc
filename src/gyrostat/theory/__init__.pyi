# The public names of gyrostat.theory and their modules. `__init__.py` reads this file and imports a name on first use.

from .amplified_heterogeneity import (
    amplification_limit as amplification_limit,
)
from .amplified_heterogeneity import (
    amplified as amplified,
)
from .amplified_heterogeneity import (
    critical_amplification as critical_amplification,
)
from .assessment import (
    Assessment as Assessment,
)
from .assessment import (
    Prediction as Prediction,
)
from .assessment import (
    Setting as Setting,
)
from .assessment import (
    assess as assess,
)
from .condition import (
    Condition as Condition,
)
from .deep_linear_landscape import (
    CriticalPoint as CriticalPoint,
)
from .deep_linear_landscape import (
    Fold as Fold,
)
from .deep_linear_landscape import (
    critical_points as critical_points,
)
from .deep_linear_landscape import (
    fold as fold,
)
from .deep_linear_landscape import (
    turning_rate as turning_rate,
)
from .final_error import (
    amplified_error_law as amplified_error_law,
)
from .final_error import (
    error_law as error_law,
)
from .final_error import (
    leading_error as leading_error,
)
from .gradient_descent import (
    Toy as Toy,
)
from .gradient_descent import (
    exact_width_rate as exact_width_rate,
)
from .gradient_descent import (
    imbalance_increment as imbalance_increment,
)
from .gradient_descent import (
    imbalanced_rate as imbalanced_rate,
)
from .gradient_descent import (
    increment_bound as increment_bound,
)
from .gradient_descent import (
    lower_bound as lower_bound,
)
from .gradient_descent import (
    symmetric_tail as symmetric_tail,
)
from .gradient_descent import (
    theorem31_conditions as theorem31_conditions,
)
from .gradient_descent import (
    theorem41_bounds as theorem41_bounds,
)
from .gradient_descent import (
    theorem42_conditions as theorem42_conditions,
)
from .gradient_descent import (
    theorem42_rate as theorem42_rate,
)
from .gradient_descent import (
    theorem43_rate as theorem43_rate,
)
from .gradient_descent import (
    theorem51_rate as theorem51_rate,
)
from .gradient_descent import (
    toy_sequences as toy_sequences,
)
from .hetero_sgd_bounds import (
    Heterogeneity as Heterogeneity,
)
from .hetero_sgd_bounds import (
    assumptions as assumptions,
)
from .hetero_sgd_bounds import (
    edge_overlap as edge_overlap,
)
from .hetero_sgd_bounds import (
    heterogeneity as heterogeneity,
)
from .hetero_sgd_bounds import (
    isometry_bound as isometry_bound,
)
from .hetero_sgd_bounds import (
    overlap_constant as overlap_constant,
)
from .hetero_sgd_bounds import (
    pooled_gap as pooled_gap,
)
from .hetero_sgd_bounds import (
    step_conditions as step_conditions,
)
from .hetero_sgd_bounds import (
    step_window as step_window,
)
from .hetero_sgd_bounds import (
    theorem2_bound as theorem2_bound,
)
from .hetero_sgd_bounds import (
    truncation_radius as truncation_radius,
)
from .predictors import (
    surrogate as surrogate,
)
from .proof_sequences import (
    calibration as calibration,
)
from .proof_sequences import (
    calibration_line as calibration_line,
)
from .proof_sequences import (
    controller as controller,
)
from .proof_sequences import (
    envelope as envelope,
)
from .proof_sequences import (
    phase_one_length as phase_one_length,
)
from .transition import (
    critical_spread as critical_spread,
)
from .transition import (
    effective_step as effective_step,
)
from .transition import (
    eliminated_by_lyapunov as eliminated_by_lyapunov,
)
from .transition import (
    exact_moments as exact_moments,
)
from .transition import (
    informal_window as informal_window,
)
from .transition import (
    lyapunov_exponent as lyapunov_exponent,
)
from .transition import (
    moment_growth as moment_growth,
)
