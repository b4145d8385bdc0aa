"""What ``opendp.prelude`` has, without OpenDP's extras, which take up to two seconds to import."""

import opendp.combinators as c
import opendp.measurements as m
import opendp.transformations as t
from opendp.accuracy import *
from opendp.context import *
from opendp.core import new_function
from opendp.domains import *
from opendp.measures import *
from opendp.metrics import *
from opendp.mod import *
