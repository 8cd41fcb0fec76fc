# The public names of this room and their homes; ``__init__.py`` reads this file and imports a name on first use.

from .comparison.leave_one_out import compare_methods as compare_methods
from .environment_labels import stacked as stacked
from .invariant.linear import InvariantLinearRegressor as InvariantLinearRegressor
from .invariant.logistic import InvariantLogisticClassifier as InvariantLogisticClassifier
from .invariant.matrix_and_quadratic import InvariantMatrixRegressor as InvariantMatrixRegressor
from .invariant.matrix_and_quadratic import InvariantQuadraticRegressor as InvariantQuadraticRegressor
from .low_rank.imputer import LowRankImputer as LowRankImputer
from .low_rank.matrix_sensing import MatrixSensingRegressor as MatrixSensingRegressor
