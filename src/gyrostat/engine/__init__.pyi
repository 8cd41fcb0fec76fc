# The public names of this room. `__init__.py` reads this file and imports a name on first use.

from .run import offshoots as offshoots
