"""Functions that JAX traced, as expressions with the derivatives of JAX.

StableHLO has no derivative rules. The derivatives of JAX are therefore lowered to modules of their
own, which a custom rule joins with the module of the function.
"""

from __future__ import annotations

import functools
import importlib

from nxla import _core
from nxla.custom import custom_grad
from nxla.derivatives import vjp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager
    from typing import Any

    from nxla._core import Expression, Tensor

__all__ = ["JaxFunction", "hoist_weights"]


class JaxFunction:
    """A function of flat lists of arrays: its Jaxpr and its expression.

    The function is linear in its last inputs, `linear` of them.
    """

    def __init__(self, traced: Any, linear: int = 0) -> None:
        import jax

        self._jaxpr = traced.jaxpr
        #: Derivatives are traced later, and without the mode JAX would narrow 64-bit types.
        self._x64 = bool(jax.config.jax_enable_x64)
        self._linear = linear
        self._types = list(map(_type_of, self._jaxpr.in_avals))
        self._results = list(map(_type_of, self._jaxpr.out_avals))
        #: The positions of the inputs and of the results that have a derivative.
        self._inputs = [at for at, each in enumerate(self._types) if _is_continuous(each)]
        self._outputs = [at for at, each in enumerate(self._results) if _is_continuous(each)]
        text = traced.lower().as_text()
        self._has_loop = "stablehlo.while" in text
        self.expression: Expression = _core.read_stablehlo(text.encode(), False, None)[0]

    @classmethod
    def of(cls, function: Callable[..., Any], types: list[Any], linear: int = 0) -> JaxFunction:
        """Trace and lower a function for inputs of these types."""
        import jax

        return cls(jax.jit(function, keep_unused=True).trace(*types), linear)

    @functools.cached_property
    def _derivative(self) -> tuple[JaxFunction, JaxFunction] | None:
        """The forward and the backward function, or `None` if JAX cannot differentiate.

        The forward function returns the results and the residuals. The backward function maps
        residuals and the cotangents of continuous results to the cotangents of continuous inputs.
        """
        if not self._inputs or not self._outputs:
            return None
        import jax
        from jax.extend.core import jaxpr_as_fun

        function = jaxpr_as_fun(self._jaxpr)
        structure: Any = None

        def forward(*inputs: Any) -> list[Any]:
            nonlocal structure
            chosen = [inputs[at] for at in self._inputs]
            continuous = self._restrict(function, inputs)
            _, pull, results = jax.vjp(continuous, *chosen, has_aux=True)
            residuals, structure = jax.tree_util.tree_flatten(pull)
            return [*results, *residuals]

        def backward(*values: Any) -> list[Any]:
            count = len(values) - len(cotangents)
            pull = jax.tree_util.tree_unflatten(structure, values[:count])
            return list(pull(list(values[count:])))

        cotangents = [self._results[at] for at in self._outputs]
        try:
            with _enable_x64(self._x64):
                first = JaxFunction.of(forward, self._types)
                types = [*first._results[len(self._results) :], *cotangents]
                return first, JaxFunction.of(backward, types, len(cotangents))
        except Exception:
            # JAX raises errors of many types for a function without a reverse rule, such as one
            # with `lax.while_loop`. The derivative may also have operations without a counterpart.
            return None

    @functools.cached_property
    def _transpose(self) -> JaxFunction | None:
        """The transpose of a function with loops in its linear inputs, for forward mode.

        nxla transposes other functions itself. Its reverse rule of a loop depends on all states of
        the loop, and a transpose must not depend on the linear inputs.
        """
        if not self._linear or not self._has_loop:
            return None
        import jax
        from jax.extend.core import jaxpr_as_fun

        function = jaxpr_as_fun(self._jaxpr)
        constant, linear = self._types[: -self._linear], self._types[-self._linear :]

        def apply_transpose(*values: Any) -> list[Any]:
            inputs, seeds = values[: len(constant)], values[len(constant) :]
            transpose = jax.linear_transpose(lambda *args: function(*inputs, *args), *linear)
            return list(transpose(list(seeds)))

        types, count = [*constant, *self._results], len(self._results)
        try:
            with _enable_x64(self._x64):
                found = JaxFunction.of(apply_transpose, types, count)
        except Exception:
            return None  # A custom rule need not be linear.
        found._transpose = self
        return found

    def call(self, inputs: list[Any], order: int = 0) -> list[Any]:
        """Add the function to the trace, with the derivatives of JAX.

        `order` is the order of the derivative that contains the function. A rule is traced at
        the call, and the trace must end: a function of the order `n` has a rule if `n + 1`
        derivatives are being traced. The first rule is always traced, because the program of the
        trace may be differentiated later.
        """
        depth = _core.derivative_depth()
        last = max(depth, 1)
        pair = self._derivative if order < last else None
        transpose = self._transpose if order <= last else None
        if not pair and not transpose:
            return self._run(*inputs)
        # A derivative shares the computation of the forward function with the results. Without a
        # derivative, the results do not compute residuals.
        saved = pair[0].call(inputs, order + 1) if pair and depth else None
        count = len(self._results)
        results = saved[:count] if saved else self._run(*inputs)
        chosen = [inputs[at] for at in self._inputs]

        def rule(seeds: list[Tensor]) -> list[Tensor]:
            if pair:
                residuals = (saved or pair[0].call(inputs, order + 1))[count:]
                cotangents = pair[1].call([*residuals, *seeds], order + 1)
            else:
                continuous = self._restrict(self._run, inputs)
                cotangents = list(vjp(continuous, *chosen, has_aux=True)[1](seeds))
            if transpose:
                constant = inputs[: -self._linear]
                cotangents[-self._linear :] = transpose.call([*constant, *seeds], order + 1)
            return cotangents

        ruled = custom_grad([results[at] for at in self._outputs], chosen, rule)
        for at, value in zip(self._outputs, ruled, strict=True):
            results[at] = value
        return results

    def _run(self, *inputs: Any) -> list[Any]:
        """Add the function to the trace, with the derivatives of nxla."""
        return list(_core.expr_call(self.expression, list(inputs)))

    def _restrict(
        self, function: Callable[..., Any], inputs: Sequence[Any]
    ) -> Callable[..., tuple[list[Any], Any]]:
        """Return the function from continuous inputs to continuous results and all results."""

        def of_continuous(*chosen: Any) -> tuple[list[Any], Any]:
            every = list(inputs)
            for at, value in zip(self._inputs, chosen, strict=True):
                every[at] = value
            results = function(*every)
            return [results[at] for at in self._outputs], results

        return of_continuous


def hoist_weights(traced: Any) -> tuple[JaxFunction, list[Any]]:
    """Return a function with the captured arrays of floats as its last inputs, and the arrays."""
    import jax

    types = list(map(_type_of, traced.jaxpr.in_avals))
    closed = jax.make_jaxpr(lambda *args: _inline(traced.jaxpr, args))(*types)
    constants = list(closed.consts)
    chosen = [at for at, each in enumerate(constants) if _is_continuous(each)]
    weights = [constants[at] for at in chosen]

    def function(*values: Any) -> list[Any]:
        consts = list(constants)
        for at, value in zip(chosen, values[len(types) :], strict=True):
            consts[at] = value
        return jax.core.eval_jaxpr(closed.jaxpr, consts, *values[: len(types)])  # type: ignore[no-any-return]

    weight_types = [jax.ShapeDtypeStruct(each.shape, each.dtype) for each in weights]
    return JaxFunction.of(function, [*types, *weight_types]), weights


def _inline(closed: Any, args: Any) -> list[Any]:
    """Evaluate a Jaxpr without its calls of jitted functions, whose constants are their own."""
    from jax.extend.core import Literal

    jaxpr = closed.jaxpr
    values = dict(zip([*jaxpr.constvars, *jaxpr.invars], [*closed.consts, *args], strict=True))

    def read(atom: Any) -> Any:
        return atom.val if isinstance(atom, Literal) else values[atom]

    for equation in jaxpr.eqns:
        operands = [read(atom) for atom in equation.invars]
        if equation.primitive.name in ("jit", "pjit"):
            results = _inline(equation.params["jaxpr"], operands)
        else:
            parts = equation.primitive.get_bind_params(equation.params)
            # Old versions of JAX pass the functions of a primitive as operands.
            functions, params = parts if isinstance(parts, tuple) else ((), parts)
            found = equation.primitive.bind(*functions, *operands, **params)
            results = found if equation.primitive.multiple_results else [found]
        values.update(zip(equation.outvars, results, strict=True))
    return [read(atom) for atom in jaxpr.outvars]


def _enable_x64(is_enabled: bool) -> AbstractContextManager[None]:
    """Return a context with or without the 64-bit types of JAX."""
    import jax

    # Old versions of JAX have the context manager in `jax.experimental`.
    module = jax if hasattr(jax, "enable_x64") else importlib.import_module("jax.experimental")
    return module.enable_x64(is_enabled)  # type: ignore[no-any-return]


def _type_of(aval: Any) -> Any:
    import jax

    return jax.ShapeDtypeStruct(aval.shape, aval.dtype)


def _is_continuous(value: Any) -> bool:
    import jax

    return bool(jax.numpy.issubdtype(value.dtype, jax.numpy.inexact))
