"""Golden tests, which compare results of nxla with recorded results of Nx for small inputs.

`nx_ops.jsonl.gz` holds calls of tensor functions, `nx_defn.jsonl.gz` numerical functions written
in Elixir. `python -m golden` (with this package's parent on the path; `make golden` does it) runs
every file of the format in a folder, on each backend.

`cases` reads files, `values` decodes values, and `compare` compares results. `calls` maps functions
of Nx to functions of nxla. `skips` contains the allowed differences, with NumPy as the `arbiter`.
`ops` runs calls. `defn_run` runs numerical functions, which the package `elixir` reads; `text`
compares expressions, `gradients` compares derivatives, and `stages` compares stages.
"""
