"""Golden tests: what a real Nx returned for small inputs, against what nxla returns.

`nx_ops.jsonl.gz` holds calls of tensor functions, `nx_defn.jsonl.gz` numerical functions written
in Elixir. `python -m golden` (with this package's parent on the path; `make golden` does it) runs
every file of the format in a folder, on each engine.

`cases` reads files, `values` decodes what is in them, `compare` says whether two results are the
same, `calls` maps functions of Nx to ours, `skips` knows in what results may differ and why, with
numpy as its `arbiter`. `ops` runs
calls. `defn_run` runs numerical functions, which the package `elixir` reads; `text` compares
expressions, `gradients` derivatives and `stages` what splitting gives.
"""
