"""What type checkers and editors know of the package, which imports nothing by itself."""

from jaxsight.library.compiling import CannotCompile as CannotCompile
from jaxsight.library.contracts import ContractBroken as ContractBroken
from jaxsight.library.contracts import expect as expect
from jaxsight.library.kernels import kernels as kernels
from jaxsight.library.measuring import NotHere as NotHere
from jaxsight.library.measuring import measure as measure
from jaxsight.library.snapshots import ProgramChanged as ProgramChanged
from jaxsight.library.snapshots import assert_program as assert_program
from jaxsight.library.sweeps import sweep as sweep
from jaxsight.measuring.programs import CannotMeasure as CannotMeasure
from jaxsight.notebooks.display import show as show
from jaxsight.notebooks.magics import load_ipython_extension as load_ipython_extension
from jaxsight.notebooks.magics import unload_ipython_extension as unload_ipython_extension
from jaxsight_source.api import sourcerize as sourcerize
from jaxsight_source.inversion.errors import NotInvertible as NotInvertible
from jaxsight_source.inversion.transform import inverse as inverse
from jaxsight_source.jaxprs.same.comparison import same_jaxpr as same_jaxpr
from jaxsight_source.jaxprs.same.difference import Difference as Difference

__version__: str
