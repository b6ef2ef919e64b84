"""Whatever the compiled module offers, the package offers too."""

import re
from pathlib import Path

import nxla
from nxla import _core

# What the package does not name, and why.
UNWRAPPED = {
    "tensor_from_bytes": "called when a tensor is unpickled",
    "set_reassociate_floats": "for tools that compare expression text",
}


def test_every_function_of_the_compiled_module_is_used_by_the_package():
    source = "\n".join(
        path.read_text(encoding="utf-8") for path in Path(nxla.__file__).parent.rglob("*.py")
    )
    imported = re.findall(r"from nxla\._core import \(?([^)]*?)(?:\)|\n\n|$)", source)
    used = set(re.findall(r"_core\.(\w+)", source)) | set(re.findall(r"\w+", " ".join(imported)))
    offered = {name for name in dir(_core) if not name.startswith("_")}
    assert offered - used - set(UNWRAPPED) == set()
    assert set(UNWRAPPED) & used == set()


def test_everything_that_is_listed_is_there():
    missing = [name for name in nxla.__all__ if not hasattr(nxla, name)]
    assert missing == []
