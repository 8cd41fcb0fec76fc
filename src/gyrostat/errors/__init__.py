"""The exception of the library, and the checks of arguments that raise it."""

from gyrostat.errors.annotation_checks import BOUNDS, check_declared, check_parameters
from gyrostat.errors.exceptions import DivergenceWarning, GyrostatError, UnknownArgument
from gyrostat.errors.keyword_checks import (
    check_keywords,
    checks_fields,
    explains_formula,
    explains_keywords,
    keyword_names,
)
from gyrostat.errors.value_checks import (
    LARGEST,
    LARGEST_RUN,
    LARGEST_SEED,
    array,
    choice,
    count,
    flag,
    function_of,
    instance,
    integer,
    number,
    orthonormal,
    shown,
    size,
    squarable,
    text,
)

__all__ = [
    "BOUNDS",
    "LARGEST",
    "LARGEST_RUN",
    "LARGEST_SEED",
    "DivergenceWarning",
    "GyrostatError",
    "UnknownArgument",
    "array",
    "check_declared",
    "check_keywords",
    "check_parameters",
    "checks_fields",
    "choice",
    "count",
    "explains_formula",
    "explains_keywords",
    "flag",
    "function_of",
    "instance",
    "integer",
    "keyword_names",
    "number",
    "orthonormal",
    "shown",
    "size",
    "squarable",
    "text",
]
