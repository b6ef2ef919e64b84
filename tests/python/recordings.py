"""Expected values that JAX or optax returned, stored in the folder `recorded`.

The fixture `recorded` is a function: ``recorded(function, *args)`` returns the stored result of
``function(jax, *args)``. With ``NXLA_BLESS=1`` and JAX installed, it calls the function and stores
the result. Record whole test files, because a file contains the values of one run.
"""

import json
import os
from pathlib import Path

import numpy as np

#: True if values are computed and stored instead of read.
RECORDS = bool(os.environ.get("NXLA_BLESS"))


def encode(value):
    """Return an array as JSON; nine digits are exact for 32 bits."""
    array = np.asarray(value)
    digits = 9 if array.dtype == np.float32 else 17
    flat = array.ravel().tolist()
    if array.dtype.kind == "f":
        flat = [float(f"{x:.{digits}g}") for x in flat]
    return {"dtype": array.dtype.name, "shape": array.shape, "values": flat}


def decode(entry):
    """Return the array of an entry."""
    return np.array(entry["values"], entry["dtype"]).reshape(entry["shape"])


class Recording:
    """The values of one test file, by test and by the order in which the test requests them."""

    def __init__(self, name):
        self._path = Path(__file__).parent / "recorded" / f"{name}.json"
        self._entries = {} if RECORDS else json.loads(self._path.read_text(encoding="utf-8"))

    def value(self, key, compute, args):
        """Return the value of a key, which is ``compute(jax, *args)``."""
        if RECORDS:
            import jax

            self._entries[key] = encode(compute(jax, *args))
        return decode(self._entries[key])

    def save(self):
        """Write the file, one value on each line."""
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in self._entries.items())
        self._path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
