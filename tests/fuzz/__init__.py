"""Programs, bytes and arguments at random, and what has to hold of them.

Each module here makes cases of one kind, as plain JSON, and checks them:

* ``generate(rng)`` makes a case;
* ``check(case)`` raises `driver.Failure` where something does not hold, and returns how many inputs
  were tried;
* ``smaller(case)`` gives cases that are a little simpler, best first, to shrink one that fails.

``python -m fuzz`` runs them all, each in processes of its own, so that a case that ends the
process or never ends is found like any other; ``python -m fuzz.differential`` runs one. Cases that
were ever found to fail are kept in ``corpus``, and tried again by every run.
"""
