"""Random programs, bytes and arguments, and the properties that must hold for them.

Each module here makes cases of one kind, as plain JSON, and checks them:

* ``generate(rng)`` makes a case;
* ``check(case)`` raises `driver.Failure` where something does not hold, and returns how many inputs
  were tried;
* ``smaller(case)`` gives cases that are a little simpler, best first, to shrink one that fails.

``python -m fuzz`` runs all fuzzers, each in separate processes, so that crashes and endless loops
are found like other failures; ``python -m fuzz.differential`` runs one fuzzer. The folder
``corpus`` contains all cases that have failed before; every run repeats them.
"""
