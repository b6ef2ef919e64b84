"""Configuration of the documentation; `make docs` builds it.

This module generates the reference pages from the package, so that every function is documented.
The headings of ``names.md`` group the functions, and `OTHERS` the functions that Nx does not have.
"""

from __future__ import annotations

import importlib
import inspect
import os
import re
from pathlib import Path
from types import ModuleType
from typing import Any

import nxla

project = "nxla"
author = "The nxla authors"
version = release = nxla.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "numpydoc", "sphinx_copybutton"]
source_suffix = {".md": "myst-nb", ".ipynb": "myst-nb", ".rst": "restructuredtext"}
myst_heading_anchors = 3
exclude_patterns = ["_build"]

# The pages of the gallery run the programs of `examples/` in a temporary folder.
nb_execution_mode = "force"
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 600
nb_merge_streams = True

html_theme = "furo"
html_title = "nxla"
html_static_path = ["_static"]
html_css_files = ["style.css"]
html_theme_options = {"top_of_page_buttons": []}
pygments_style = "friendly"
pygments_dark_style = "monokai"
# The copy button omits prompts and output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

autodoc_typehints = "none"
numpydoc_show_class_members = False
# Types in docstrings are prose, not references to classes.
numpydoc_xref_param_type = False

HERE = Path(__file__).parent
GENERATED = HERE / "reference" / "generated"

#: The public names that ``names.md`` omits, by the headings of their pages.
OTHERS = {
    "Functions of functions": "checkpoint Compiled eval_shape Function named_scope safe_where",
    "Control flow and effects": "annotate associative_scan foreign_call Stream switch",
    "Creation": "arange asarray empty empty_like meshgrid ones ones_like Template zeros zeros_like",
    "Conversion and reflection": "broadcast_shapes can_cast DType finfo iinfo isdtype result_type",
    "Shape": "broadcast_arrays matrix_transpose moveaxis repeat roll rot90 swapaxes unstack",
    "Element by element: two operands": "allclose copysign floor_divide hypot isclose logaddexp "
    "nextafter",
    "Element by element: one operand": "digamma isfinite lgamma nan_to_num positive reciprocal "
    "signbit square trunc",
    "Reductions": "bincount count_nonzero histogram nanargmax nanargmin nancumprod nancumsum "
    "nanmax nanmean nanmedian nanmin nanpercentile nanprod nanquantile nanstd nansum nanvar "
    "percentile quantile segment_max segment_min segment_prod segment_sum",
    "Products, sorting, transforms": "argpartition cross einsum gradient interp kron matmul "
    "partition tensordot trapezoid vdot vecdot",
    "Indexing": "digitize isin nonzero searchsorted unique_all unique_counts unique_inverse "
    "unique_values",
    "Files and programs of other libraries": "from_jax from_onnx from_safetensors from_stablehlo "
    "import_stablehlo load save to_safetensors",
    "Compilers": "Compiler compilers register_compiler",
    "Meshes of devices": "jit_partitions Mesh partitions_options shard shard_map ShardedTensor "
    "Sharding with_sharding_constraint",
    "Expressions and containers": "Expr Expression Node Stage StageGraph",
    "Inspection and measurement": "cache_report compare Comparison debug_nans disk_cache_report "
    "explain Explanation profile set_cache_limit show_versions track_tensors transfer_report View "
    "view",
    "Errors and warnings": "ArgumentError CaptureWarning DeviceError DTypeError ExecutionError "
    "FormatError GradientError InternalError NxlaError OptionError OutOfMemoryError "
    "RecompileWarning ShapeError TraceError",
}

#: The public namespaces with their titles. `nx.errors` has the classes of the main namespace.
MODULES = {
    "linalg": "Linear algebra",
    "fft": "Fourier transforms",
    "random": "Random numbers",
    "graph": "Expressions and stages",
    "tree": "Containers",
    "testing": "Testing",
    "nn": "Neural networks",
    "nn.initializers": "Initial parameters",
    "optim": "Optimizers",
    "special": "Special functions",
    "data": "Batches of data",
    "constants": "Constants",
    "collectives": "Collective operations",
    "composite": "Leaves of containers",
    "expr": "Construction of graphs",
}


def groups() -> dict[str, list[str]]:
    """Return the public names of the main namespace by the headings of their pages."""
    text = (HERE / "names.md").read_text()
    text = text.split("\n## Names of ")[0]
    found: dict[str, list[str]] = {}
    left = {name for name in nxla.__all__ if is_documented(getattr(nxla, name))}
    for section in text.split("\n## ")[1:]:
        heading, _, body = section.partition("\n")
        named = re.findall(r"`nx\.(\w+)`", body)
        own = [name for name in dict.fromkeys(named) if name in left]
        left.difference_update(own)
        if own:
            found[heading] = own
    for heading, names in OTHERS.items():
        own = names.split()
        left.difference_update(own)
        found[heading] = found.get(heading, []) + own
    if left:
        raise ValueError(f"OTHERS: must contain every name that names.md omits; add {sorted(left)}")
    return found


def is_documented(value: Any) -> bool:
    """Return whether a public name is a function or a class."""
    return callable(value) and not isinstance(value, ModuleType)


def entry(module: str, name: str, value: Any) -> str:
    """Return the directive for one function or class."""
    kind = "autoclass" if inspect.isclass(value) else "autofunction"
    lines = [f"```{{eval-rst}}\n.. {kind}:: {module}.{name}"]
    if inspect.isclass(value) and not issubclass(value, Exception):
        lines.append("   :members:")
    return "\n".join([*lines, "```"])


def write_page(path: Path, title: str, module: str, names: list[str]) -> None:
    """Write a page with the documentation of some names."""
    owner = importlib.import_module(module)
    parts = [f"# {title}"]
    parts += [entry(module, name, getattr(owner, name)) for name in names]
    text = "\n\n".join(parts) + "\n"
    # Sphinx reads a page again if its modification time changes.
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def write_reference(_app: object) -> None:
    """Write the pages of the reference."""
    GENERATED.mkdir(parents=True, exist_ok=True)
    for number, (heading, names) in enumerate(groups().items(), 1):
        slug = re.sub(r"\W+", "-", heading.lower()).strip("-")
        write_page(GENERATED / f"main-{number:02}-{slug}.md", heading, "nxla", names)
    for name, title in MODULES.items():
        module = importlib.import_module(f"nxla.{name}")
        names = [public for public in module.__all__ if is_documented(getattr(module, public))]
        full = f"nxla.{name}"
        write_page(GENERATED / f"{name}.md", f"{title}: `nx.{name}`", full, names)


def write_architecture(_app: object) -> None:
    """Write the architecture page from the file in the root folder."""
    text = (HERE.parent / "ARCHITECTURE.md").read_text()
    text = text.replace("](docs/", "](../../").replace("](README.md)", "](../../index.md)")
    text = text.replace("[SECURITY.md](SECURITY.md)", "`SECURITY.md`")
    GENERATED.mkdir(parents=True, exist_ok=True)
    (GENERATED / "architecture.md").write_text(text)


def quiet_kernels() -> None:
    """Silence the connection messages of the notebook kernels."""
    profile = HERE / "_build" / "ipython" / "profile_default"
    profile.mkdir(parents=True, exist_ok=True)
    (profile / "ipython_kernel_config.py").write_text('c.IPKernelApp.log_level = "ERROR"\n')
    os.environ["IPYTHONDIR"] = str(profile.parent)


def prepare(_app: object, _page: str, source: list[str]) -> None:
    """Redirect links to ARCHITECTURE.md to its page, and remove the last empty line of code blocks.

    Doctest needs the empty line: otherwise the closing fence is part of the expected output.
    """
    source[0] = re.sub(r"(```python\n.*?)\n\n```\n", r"\1\n```\n", source[0], flags=re.DOTALL)
    source[0] = source[0].replace(
        "](../../ARCHITECTURE.md", "](../reference/generated/architecture.md"
    )


def setup(app: Any) -> dict[str, bool]:
    """Register with Sphinx."""
    os.environ["NXLA_DOCS"] = str(HERE)
    quiet_kernels()
    app.connect("builder-inited", write_reference)
    app.connect("builder-inited", write_architecture)
    app.connect("source-read", prepare)
    return {"parallel_read_safe": True}
