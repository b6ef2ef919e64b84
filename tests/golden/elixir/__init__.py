"""A reader for the part of Elixir that golden cases are written in.

`evaluate` runs a snippet, `load` reads the body of a module, and `function` returns one of its
functions, which nxla can trace. `lexer` and `parser` build a tree (`syntax`). `interpreter` runs
the tree: `numerical` defines the semantics inside ``defn``, and `host` outside. `library` maps
functions of Nx to functions of nxla.
"""

from golden.elixir.errors import ElixirError, MatchError, Unsupported
from golden.elixir.modules import evaluate, function, load

__all__ = ["ElixirError", "MatchError", "Unsupported", "evaluate", "function", "load"]
