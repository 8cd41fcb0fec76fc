# The public names of this room. `__init__.py` reads this file and imports a name on first use.

from .grain_batches import GrainEnvironmentBatches as GrainEnvironmentBatches
