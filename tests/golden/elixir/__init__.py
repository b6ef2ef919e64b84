"""A reader for the part of Elixir that golden cases are written in.

`evaluate` runs a snippet, `load` reads the body of a module; `function` gives a function of it that
nxla can trace. `lexer` and `parser` make a tree (`syntax`), `interpreter` runs it with the meaning
that `numerical` gives to code inside of ``defn`` and `host` to other code; `library` knows which
function of ours stands for which one of Nx.
"""

from golden.elixir.errors import ElixirError, MatchError, Unsupported
from golden.elixir.modules import evaluate, function, load

__all__ = ["ElixirError", "MatchError", "Unsupported", "evaluate", "function", "load"]
