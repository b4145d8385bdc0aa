"""The exceptions of all rooms. Importing it makes each a name of ``opendp_concurrent.errors``."""

from . import blocks as blocks
from . import contexts as contexts
from . import data as data
from . import events as events
from . import ledger as ledger
from . import mechanisms as mechanisms
from . import streams as streams
