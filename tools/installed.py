"""Check an installed `nxla`, outside of its checkout: a smoke test, and all examples."""

import doctest
import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from types import ModuleType

import nxla as nx

OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
# Examples of optional packages are skipped if the package is not installed.
OPTIONAL = {"distributed", "opt_einsum", "safetensors", "scipy", "torch", "jax"}


def smoke() -> None:
    """Differentiate, compile and run, save and load."""
    location = Path(nx.__file__).resolve()
    if "site-packages" not in location.parts:
        sys.exit(f"the imported package is not the installed one: {location}")
    step = nx.jit(nx.value_and_grad(lambda w, x: nx.sum((w * x) ** 2)))
    value, slope = step(nx.tensor([1.0, 2.0]), nx.tensor([3.0, 1.0]))
    if value.item() != 13.0 or slope.tolist() != [18.0, 4.0]:
        sys.exit(f"the gradient is wrong: {value}, {slope}")
    if nx.deserialize(nx.serialize({"slope": slope}))["slope"].tolist() != [18.0, 4.0]:
        sys.exit("deserialize does not return the serialized value")


def skip_words() -> list[str]:
    """Return the strings that identify an example with a missing package."""
    words = [f"{verb} {name}" for name in OPTIONAL for verb in ("import", "from")]
    try:
        nx.jit(lambda x: x, compiler="xla")(1.0)
    except nx.DeviceError:
        words += ["xla", "mesh", "Mesh", "shard"]
    return words


def modules() -> list[ModuleType]:
    """Return the package and every module in it."""
    found = [nx]
    for module in pkgutil.walk_packages(nx.__path__, "nxla."):
        try:
            found.append(importlib.import_module(module.name))
        except ImportError as error:
            if (error.name or "").partition(".")[0] not in OPTIONAL:
                raise
    return found


def examples() -> tuple[int, int, int]:
    """Run the examples; return the counts of all, of failed and of skipped ones.

    Examples that need packages outside of the installed ones are skipped.
    """
    parser = doctest.DocTestParser()
    runner = doctest.DocTestRunner(optionflags=OPTIONS, verbose=False)
    count = failed = skipped = 0
    words = skip_words()
    seen: set[int] = set()
    for module in modules():
        members = [module, *(member for _, member in inspect.getmembers(module))]
        for member in members:
            text = inspect.getdoc(member) or ""
            own = getattr(member, "__module__", None) or getattr(member, "__name__", "")
            if ">>>" not in text or id(member) in seen or not str(own).startswith("nxla"):
                continue
            seen.add(id(member))
            if any(word in text for word in words):
                skipped += 1
                continue
            name = getattr(member, "__qualname__", module.__name__)
            # The compiled files are in no module whose name would hide a module of Python.
            is_python = inspect.isroutine(member) is inspect.isfunction(member)
            home = sys.modules.get(str(own)) if is_python else None
            scope = {**(vars(home) if home else {}), "nx": nx}
            result = runner.run(parser.get_doctest(text, scope, name, None, 0))
            count, failed = count + result.attempted, failed + result.failed
    return count, failed, skipped


def main() -> None:
    """Check everything."""
    smoke()
    count, failed, skipped = examples()
    if failed or not count:
        sys.exit(f"{failed} of {count} examples failed")
    sys.stdout.write(
        f"{count} examples passed ({skipped} skipped, because they need optional packages)\n"
    )


if __name__ == "__main__":
    main()
