"""The backends of tests that run XLA with custom calls of the evaluator's kernels and without."""

import nxla as nx

#: The options of the backends, by name.
BACKENDS = {
    "evaluator": {"compiler": "evaluator"},
    "xla": {"compiler": "xla"},
    "xla alone": {"compiler": "xla", "kernels": False},
}


def jit(function, backend):
    """Return a function compiled by a backend.

    XLA compiles a module without kernels only if it differs from the module with kernels, because
    equal modules are equal programs, and the program with kernels has been compiled already.
    """
    compiled = nx.jit(function, **BACKENDS[backend])
    if backend != "xla alone":
        return compiled
    with_kernels = nx.jit(function, **BACKENDS["xla"])

    def call(*args):
        modules = [f.lower(*args).as_text(portable=False) for f in (compiled, with_kernels)]
        return (with_kernels if modules[0] == modules[1] else compiled)(*args)

    return call


def run_all(functions, backend, *args):
    """Return the results of functions of the same arguments, by the names of the functions.

    XLA compiles all functions as one program, because it takes long to compile each program and
    compiles equal parts of a program once. The evaluator runs each function as a program.
    """
    groups = [[name] for name in functions] if backend == "evaluator" else [list(functions)]
    results = {}
    for names in groups:
        compiled = jit(lambda *args, names=names: [functions[n](*args) for n in names], backend)
        results.update(zip(names, compiled(*args), strict=True))
    return results
