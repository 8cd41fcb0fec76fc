# The public names and their homes. `gyrostat/__init__.py` reads this file and imports a name on first use.

from . import (
    algorithms as algorithms,
)
from . import (
    diagnostics as diagnostics,
)
from . import (
    engine as engine,
)
from . import (
    environments as environments,
)
from . import (
    estimators as estimators,
)
from . import (
    experiments as experiments,
)
from . import (
    figures as figures,
)
from . import (
    measurements as measurements,
)
from . import (
    models as models,
)
from . import (
    sweeps as sweeps,
)
from . import (
    tables as tables,
)
from . import (
    theory as theory,
)
from . import (
    torch as torch,
)
from .algorithms.algorithm import Algorithm as Algorithm
from .algorithms.batches import (
    Batches as Batches,
)
from .algorithms.batches import (
    Full as Full,
)
from .algorithms.batches import (
    OneEnvironment as OneEnvironment,
)
from .algorithms.batches import (
    Pooled as Pooled,
)
from .algorithms.events import (
    Event as Event,
)
from .algorithms.events import (
    ImbalanceStep as ImbalanceStep,
)
from .algorithms.events import (
    Shrinkage as Shrinkage,
)
from .algorithms.initialisation import (
    FanInGaussian as FanInGaussian,
)
from .algorithms.initialisation import (
    FanInUniform as FanInUniform,
)
from .algorithms.initialisation import (
    Given as Given,
)
from .algorithms.initialisation import (
    ImbalancedGaussian as ImbalancedGaussian,
)
from .algorithms.initialisation import (
    Orthogonal as Orthogonal,
)
from .algorithms.initialisation import (
    OrthonormalZero as OrthonormalZero,
)
from .algorithms.initialisation import (
    ScaledGaussian as ScaledGaussian,
)
from .algorithms.initialisation import (
    ScaledIdentity as ScaledIdentity,
)
from .algorithms.initialisation import (
    Spectral as Spectral,
)
from .algorithms.initialisation import (
    Start as Start,
)
from .algorithms.initialisation import (
    SymmetricGaussian as SymmetricGaussian,
)
from .algorithms.named_algorithms import (
    GradientDescent as GradientDescent,
)
from .algorithms.named_algorithms import (
    HeteroSGD as HeteroSGD,
)
from .algorithms.named_algorithms import (
    PooledGD as PooledGD,
)
from .algorithms.named_algorithms import (
    PooledSGD as PooledSGD,
)
from .algorithms.named_algorithms import (
    PrecGD as PrecGD,
)
from .algorithms.named_algorithms import (
    QuadraticNetwork as QuadraticNetwork,
)
from .algorithms.named_algorithms import (
    RidgeDescent as RidgeDescent,
)
from .algorithms.named_algorithms import (
    ScaledGD as ScaledGD,
)
from .algorithms.optax_amplification import (
    amplified_heterogeneity as amplified_heterogeneity,
)
from .algorithms.rules_with_memory import (
    Adam as Adam,
)
from .algorithms.rules_with_memory import (
    Momentum as Momentum,
)
from .algorithms.rules_with_memory import (
    Nesterov as Nesterov,
)
from .algorithms.rules_with_memory import (
    Optax as Optax,
)
from .algorithms.schedules import (
    Annealing as Annealing,
)
from .algorithms.schedules import (
    Constant as Constant,
)
from .algorithms.schedules import (
    Periodic as Periodic,
)
from .algorithms.schedules import (
    Piecewise as Piecewise,
)
from .algorithms.schedules import (
    Schedule as Schedule,
)
from .algorithms.schedules import (
    WarmUp as WarmUp,
)
from .algorithms.update_rules import (
    GradientStep as GradientStep,
)
from .algorithms.update_rules import (
    Preconditioned as Preconditioned,
)
from .algorithms.update_rules import (
    RidgeStep as RidgeStep,
)
from .algorithms.update_rules import (
    UpdateRule as UpdateRule,
)
from .diagnostics import (
    DIAGNOSTICS as DIAGNOSTICS,
)
from .diagnostics import (
    Diagnostic as Diagnostic,
)
from .diagnostics import (
    Region as Region,
)
from .diagnostics import (
    absorbing as absorbing,
)
from .diagnostics import (
    approximate_rank as approximate_rank,
)
from .diagnostics import (
    diagnostic as diagnostic,
)
from .diagnostics import (
    isometry_constant as isometry_constant,
)
from .diagnostics import (
    jump_times as jump_times,
)
from .diagnostics import (
    jumps as jumps,
)
from .diagnostics import (
    late_speed as late_speed,
)
from .diagnostics import (
    membership as membership,
)
from .diagnostics import (
    representation_cost as representation_cost,
)
from .engine.run import (
    offshoots as offshoots,
)
from .engine.run import (
    run as run,
)
from .engine.run import (
    run_grid as run_grid,
)
from .engine.summary import summary as summary
from .environments import (
    Absent as Absent,
)
from .environments import (
    ArrayEnvironments as ArrayEnvironments,
)
from .environments import (
    Environments as Environments,
)
from .environments import (
    FeatureEnvironments as FeatureEnvironments,
)
from .environments import (
    Finite as Finite,
)
from .environments import (
    Gaussian as Gaussian,
)
from .environments import (
    Law as Law,
)
from .environments import (
    Observed as Observed,
)
from .environments import (
    RandomEnvironments as RandomEnvironments,
)
from .environments import (
    RandomRectangular as RandomRectangular,
)
from .environments import (
    RectangularEnvironments as RectangularEnvironments,
)
from .environments import (
    Sampler as Sampler,
)
from .environments import (
    TwoPoint as TwoPoint,
)
from .environments import (
    Uniform as Uniform,
)
from .environments import (
    VectorEnvironments as VectorEnvironments,
)
from .errors import (
    DivergenceWarning as DivergenceWarning,
)
from .errors import (
    GyrostatError as GyrostatError,
)
from .estimators.comparison.leave_one_out import compare_methods as compare_methods
from .estimators.invariant.diagnosis import heterogeneity as heterogeneity
from .figures.result_plot import plot as plot
from .measurements import (
    Dense as Dense,
)
from .measurements import (
    DenseData as DenseData,
)
from .measurements import (
    Entries as Entries,
)
from .measurements import (
    FixedGaussian as FixedGaussian,
)
from .measurements import (
    FreshGaussian as FreshGaussian,
)
from .measurements import (
    Identity as Identity,
)
from .measurements import (
    Measurements as Measurements,
)
from .measurements import (
    RankOne as RankOne,
)
from .measurements.problem import Problem as Problem
from .models import (
    Asymmetric as Asymmetric,
)
from .models import (
    DeepLinear as DeepLinear,
)
from .models import (
    Diagonal as Diagonal,
)
from .models import (
    Model as Model,
)
from .models import (
    Symmetric as Symmetric,
)
from .models import (
    SymmetricDifference as SymmetricDifference,
)
from .reproduce.load_results import load_results as load_results
from .sweeps import sweep as sweep

__all__: list[str]
__version__: str
