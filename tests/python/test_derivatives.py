"""Jacobians, Hessians, JVPs and VJPs, and their composition with other transformations."""

import copy
import math
import pickle

import pytest

import nxla as nx


def close(found, expected, tolerance=1e-9):
    """Compare containers of numbers."""
    found, expected = nx.tree.flatten(found), nx.tree.flatten(expected)
    assert len(found[0]) == len(expected[0])
    for one, other in zip(found[0], expected[0], strict=True):
        assert nx.all_close(one, other, rtol=tolerance, atol=tolerance).item(), (one, other)


def f64(values):
    return nx.tensor(values, dtype=nx.float64)


def loop(x):
    """A function with all kinds of control flow."""

    def step(carry, row):
        carry = nx.cond(nx.sum(carry) > 1.0, lambda: nx.sin(carry) * row, lambda: carry + row**2)
        return carry, nx.sum(carry * row)

    carry, rows = nx.scan(step, x, nx.reshape(nx.linspace(0.1, 0.9, 8, dtype=nx.float64), (4, 2)))
    (last, _) = nx.while_loop(
        lambda state: state[1] < 3, lambda state: (nx.tanh(state[0]), state[1] + 1), (carry, 0)
    )
    return nx.concat([last, rows])


def differences(function, x, step=1e-6):
    """Return the Jacobian by central differences."""
    columns = []
    for index in range(x.shape[0]):
        moved = nx.tensor(
            [step if i == index else 0.0 for i in range(x.shape[0])], dtype=nx.float64
        )
        columns.append((function(x + moved) - function(x - moved)) / (2 * step))
    return nx.stack(columns, axis=-1)


def test_jvp_of_containers():
    def function(params, x):
        return {"y": params["w"] * x + params["b"], "z": [x**2]}

    primals = ({"w": f64(2.0), "b": f64(1.0)}, f64(3.0))
    tangents = ({"w": f64(1.0), "b": f64(0.5)}, f64(10.0))
    value, tangent = nx.jvp(function, primals, tangents)
    close(value, {"y": 7.0, "z": [9.0]})
    close(tangent, {"y": 3.0 + 20.0 + 0.5, "z": [60.0]})


def test_aux_results_are_returned():
    def function(x):
        return x**2, {"twice": 2 * x, "whole": nx.astype(x, nx.int32)}

    value, tangent, aux = nx.jvp(function, (3.0,), (1.0,), has_aux=True)
    assert (value.item(), tangent.item(), aux["twice"].item(), aux["whole"].item()) == (9, 6, 6, 3)
    value, pull, aux = nx.vjp(function, 3.0, has_aux=True)
    assert (value.item(), pull(1.0)[0].item(), aux["twice"].item()) == (9, 6, 6)
    value, push, aux = nx.linearize(function, 3.0, has_aux=True)
    assert (value.item(), push(1.0).item(), aux["twice"].item()) == (9, 6, 6)
    for make in (nx.jacfwd, nx.jacrev, nx.jacobian):
        found, aux = make(function, has_aux=True)(3.0)
        assert (found.item(), aux["twice"].item()) == (6, 6)
    found, aux = nx.hessian(function, has_aux=True)(3.0)
    assert (found.item(), aux["twice"].item()) == (2, 6)


def test_all_transformations_compute_the_same_jacobian(compiler):
    x = f64([0.3, 0.4])
    expected = differences(loop, x)
    with nx.default_options(compiler=compiler):
        for make in (nx.jacfwd, nx.jacrev, nx.jacobian):
            close(make(loop)(x), expected, 1e-7)
        value, push = nx.linearize(loop, x)
        close(value, loop(x))
        _, pull = nx.vjp(loop, x)
        for index in range(2):
            direction = f64([float(index == 0), float(index == 1)])
            close(push(direction), expected[:, index], 1e-7)
            close(nx.jvp(loop, (x,), (direction,))[1], expected[:, index], 1e-7)
        for index in range(6):
            cotangent = f64([float(index == i) for i in range(6)])
            close(pull(cotangent)[0], expected[index], 1e-7)


def test_second_derivatives_of_control_flow():
    def function(x):
        return nx.sum(loop(x) ** 2)

    x = f64([0.3, 0.4])
    expected = differences(nx.grad(function), x)
    close(nx.hessian(function)(x), expected, 1e-6)
    close(nx.jacrev(nx.jacrev(function))(x), expected, 1e-6)
    close(nx.jacfwd(nx.jacfwd(function))(x), expected, 1e-6)
    close(nx.hessian_diagonal(function)(x), nx.take_diagonal(expected), 1e-6)


def test_third_derivatives():
    third = nx.jacfwd(nx.hessian(lambda x: x[0] ** 3 * x[1] ** 2))(f64([2.0, 3.0]))
    assert third[0, 0, 0].item() == 6 * 9
    assert third[0, 0, 1].item() == 6 * 2 * 2 * 3
    assert third[0, 1, 1].item() == 3 * 4 * 2
    fourth = nx.jacfwd(nx.jacfwd(nx.jacfwd(nx.jacfwd(nx.sin))))(f64(0.5))
    assert math.isclose(fourth.item(), math.sin(0.5))


def test_jacobians_of_containers_nest():
    def function(params, x):
        return {"y": params["w"] @ x, "n": nx.sum(x)}

    params = {"w": f64([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])}
    x = f64([1.0, 10.0, 100.0])
    for make in (nx.jacfwd, nx.jacrev):
        by_both = make(function, argnums=(0, 1))(params, x)
        assert by_both["y"][0]["w"].shape == (2, 2, 3)
        close(by_both["y"][1], params["w"])
        close(by_both["n"][1], nx.ones(3, dtype=nx.float64))
        close(by_both["n"][0]["w"], nx.zeros((2, 3), dtype=nx.float64))
    hessian = nx.hessian(lambda p: nx.sum(p["a"] ** 2 * p["b"]))({"a": f64([3.0]), "b": f64([5.0])})
    assert hessian["a"]["a"].item() == 10.0
    assert hessian["a"]["b"].item() == 6.0


def test_arguments_are_chosen_by_position_name_and_path():
    def function(params, x, *, scale):
        return params["w"][1] * x * scale

    params = {"w": [1.0, 2.0], "b": 0.0}
    for argnums, expected in [
        (1, 10.0),
        (-1, 10.0),
        ("x", 10.0),
        ("scale", 6.0),
        ("params['w'][1]", 15.0),
    ]:
        found = nx.jacfwd(function, argnums)(params, 3.0, scale=5.0)
        assert found.item() == expected, argnums
    found = nx.jacrev(function, argnums=["params['w']", "scale"])(params, 3.0, scale=5.0)
    assert [x.item() for x in nx.tree.leaves(found)] == [0.0, 15.0, 6.0]


def test_invalid_argnums_raise():
    def function(params, x):
        return params["w"] * x

    params = {"w": 1.0}
    for argnums, why in [
        (
            2,
            r"jacfwd: argnums: must be from -2 to 1, .* of function; got 2",
        ),
        ("z", r"jacfwd: argnums: must name parameters of function \(params, x\); got 'z'"),
        (
            "params['v']",
            r"jacfwd: argnums: must be a part of .*; got params\['v'\]",
        ),
        ("1 +", r"jacfwd: argnums: must be a name or a path"),
    ]:
        with pytest.raises(nx.ArgumentError, match=why):
            nx.jacfwd(function, argnums)(params, 1.0)
    why = r"grad: argnums: must be a name, because function received no .*; write argnums='params'"
    with pytest.raises(nx.ArgumentError, match=why):
        nx.grad(function)(params=params, x=1.0)


def test_invalid_tangents_raise():
    x = nx.zeros(3)
    with pytest.raises(nx.ArgumentError, match=r"jvp: tangent 0: expected f32\[3\]; got f32\[2\]"):
        nx.jvp(nx.sin, (x,), (nx.zeros(2),))
    with pytest.raises(nx.ArgumentError, match=r"jvp: tangents: must be 1, .* of sin; got 2"):
        nx.jvp(nx.sin, (x,), (x, x))
    with pytest.raises(nx.ArgumentError, match="jvp: tangents: must have the structure"):
        nx.jvp(lambda pair: pair["a"], ({"a": x},), ((x,),))
    _, pull = nx.vjp(nx.sin, x)
    with pytest.raises(nx.ArgumentError, match=r"vjp: cotangent 0: expected f32\[3\]; got f32"):
        pull(1.0)
    with pytest.raises(nx.ArgumentError, match="vjp: cotangents: must have the structure"):
        pull((x, x))
    with pytest.raises(nx.GradientError, match="quotient: integer division has no derivative"):
        nx.jvp(lambda x: nx.quotient(x, 2), (3,), (1.0,))


def test_complex_functions_support_jvp_but_not_jacobians():
    z = nx.tensor(1.0 + 2.0j)
    value, tangent = nx.jvp(lambda z: z**2, (z,), (1.0j,))
    close(value, nx.tensor(-3.0 + 4.0j), 1e-6)
    close(tangent, nx.tensor(2.0j * (1.0 + 2.0j)), 1e-6)
    with pytest.raises(nx.ArgumentError, match="differentiate for real and imaginary part"):
        nx.jacfwd(lambda z: nx.real(z * nx.conj(z)))(z)
    with pytest.raises(nx.ArgumentError, match="differentiate for real and imaginary part"):
        nx.jacrev(lambda x: x * 1.0j)(1.0)


def test_derivatives_compose_with_jit_and_scan():
    @nx.jit
    def newton(x):
        def step(x, _):
            value, slope = nx.jvp(lambda x: x**2 - 2.0, (x,), (nx.ones_like(x),))
            return x - value / slope, value

        return nx.scan(step, x, nx.zeros(6))[0]

    assert math.isclose(newton(1.0).item(), math.sqrt(2.0), rel_tol=1e-6)

    @nx.jit
    def both(x, v):
        y, pull = nx.vjp(nx.sin, x)
        _, push = nx.linearize(nx.sin, x)
        return y, pull(v)[0], push(v)

    x, v = f64([0.1, 0.2]), f64([1.0, 10.0])
    close(both(x, v), (nx.sin(x), nx.cos(x) * v, nx.cos(x) * v))


def test_vmap_and_derivatives_compose():
    rows = f64([[0.3, 0.4], [0.5, 0.1], [0.2, 0.9]])
    for make in (nx.jacfwd, nx.jacrev, nx.hessian):
        function = nx.jit(lambda x: nx.sum(loop(x))) if make is nx.hessian else loop
        found = nx.vmap(make(function))(rows)
        close(found, nx.stack([make(function)(row) for row in rows]), 1e-9)
    square = nx.vmap(lambda x: nx.sum(x) ** 2)
    close(
        nx.jacfwd(square)(rows),
        nx.jacrev(square)(rows),
    )
    # The result has an entry for each entry of the captured value.
    scales = nx.vectorize(f64([1.0, 2.0, 3.0]), "entry")
    for make in (nx.jacfwd, nx.jacrev):
        found = nx.devectorize(make(lambda x: x**2 * scales)(f64(5.0)))
        close(found, f64([10.0, 20.0, 30.0]))


def test_hooks_run_once_in_jvp_and_vjp():
    seen = []

    def function(x):
        return nx.sin(nx.hook(x, lambda x: seen.append(x.item())))

    nx.jvp(function, (0.5,), (1.0,))
    assert seen == [0.5]
    seen.clear()
    _, pull = nx.vjp(function, 0.5)
    pull(1.0), pull(2.0)
    assert seen == [0.5]


def test_static_arguments_are_not_traced():
    @nx.jit(static_argnums=1)
    def power(x, n):
        assert isinstance(n, int)
        return x**n

    value, tangent = nx.jvp(power, (2.0, 3), (1.0, None))
    assert (value.item(), tangent.item()) == (8.0, 12.0)
    _, pull = nx.vjp(power, 2.0, 3)
    assert pull(1.0)[0].item() == 12.0
    assert nx.jacfwd(power)(2.0, 3).item() == 12.0


def test_hessian_diagonal_does_not_build_the_hessian():
    def function(x):
        return nx.sum(nx.exp(x) * x)

    diagonal = nx.hessian_diagonal(function)
    x = nx.zeros(100)
    close(diagonal(x), 2.0 * nx.ones(100), 1e-5)
    # The program has no node with 100 x 100 elements.
    assert "[100][100]" not in str(diagonal.debug_expr(x))


def test_linear_custom_rules_support_forward_mode():
    def scaled(x):
        return nx.custom_grad(nx.sin(x), x, lambda g: 7.0 * g)

    assert nx.jvp(scaled, (0.5,), (2.0,))[1].item() == 14.0

    def clipped(x):
        return nx.custom_grad(nx.sin(x), x, lambda g: nx.clip(g, -1.0, 1.0))

    with pytest.raises(nx.GradientError, match="rule: must be linear"):
        nx.jvp(clipped, (0.5,), (2.0,))


def sines_fori(x):
    return nx.fori(0, 3, lambda i, c: nx.sin(c) * x, x)


def sines_scan(x):
    return nx.scan(lambda c, row: (nx.sin(c) * x + row, c), x, nx.stack([x, x, x]))[0]


def sines_while(x):
    return nx.while_loop(lambda c: c > 0.1, lambda c: nx.sin(c) * x, x)


def sines_bounded(x):
    return nx.while_loop(lambda c: c > 0.1, lambda c: nx.sin(c) * x, x, max_trips=5)


@pytest.mark.parametrize("function", [sines_fori, sines_scan, sines_while, sines_bounded])
def test_custom_rules_with_loops_of_coefficients_are_linear(function):
    # The loop of the derivative computes coefficients and tangents together.
    pushed = nx.custom_jvp(function)
    pushed.defjvp(lambda primals, tangents: nx.jvp(function, primals, tangents)[1])
    pulled = nx.custom_vjp(function)
    pulled.defvjp(
        lambda x: (function(x), x),
        lambda x, cotangent: nx.vjp(function, x)[1](cotangent),
    )
    points = f64([0.3, 0.5, 0.7])
    for derivative in (nx.grad, nx.jacfwd, nx.hessian, lambda f: nx.grad(nx.checkpoint(f))):
        expected = nx.vmap(derivative(function))(points)
        for custom in (pushed, pulled):
            close(derivative(custom)(points[1]), expected[1])
            close(nx.vmap(derivative(custom))(points), expected)
            close(nx.jit(nx.vmap(derivative(custom)))(points), expected)
    expected = nx.vmap(nx.grad(function))(points)
    for custom in (function, pushed, pulled):
        close(nx.grad(lambda x, custom=custom: nx.sum(nx.vmap(custom)(x)))(points), expected)


def test_nonlinear_loops_in_custom_rules_are_rejected():
    square = nx.custom_jvp(nx.sin)
    square.defjvp(
        lambda primals, tangents: nx.fori(
            0, 3, lambda i, u: (u[0] * 0.5, u[0] * u[1] * u[1]), (primals[0], tangents[0])
        )[1]
    )
    with pytest.raises(nx.GradientError, match="rule: must be linear"):
        nx.grad(square)(0.5)


def test_custom_vjp_replaces_the_gradient_and_skips_arguments():
    @nx.custom_vjp(nondiff_argnums=(0,))
    def apply(function, x, y):
        return {"out": function(x) * y}

    def forward(function, x, y):
        return {"out": function(x) * y}, (x, y)

    def backward(function, residuals, cotangents):
        x, y = residuals
        return cotangents["out"] * y * 100.0, cotangents["out"] * function(x)

    apply.defvjp(forward, backward)
    assert apply(nx.sin, 0.5, 2.0)["out"].item() == pytest.approx(2.0 * math.sin(0.5))
    gradients = nx.grad(lambda x, y: apply(nx.sin, x, y)["out"], argnums=(0, 1))(0.5, 2.0)
    assert [g.item() for g in gradients] == pytest.approx([200.0, math.sin(0.5)])
    # The rule is linear in its cotangents, so its transpose is the rule of forward mode.
    tangent = nx.jvp(lambda x: apply(nx.sin, x, 2.0)["out"], (0.5,), (1.0,))[1]
    assert tangent.item() == 200.0


def test_forward_rules_run_only_for_derivatives(compiler):
    calls = []

    @nx.custom_vjp
    def twice(x):
        return x * 2.0

    def forward(x):
        calls.append("forward")
        return x * 3.0, x

    twice.defvjp(forward, lambda x, cotangent: (cotangent * x * 10.0,))
    assert twice(2.0).item() == 4.0
    assert nx.vmap(twice)(nx.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]
    assert nx.jit(twice, compiler=compiler)(2.0).item() == 4.0
    assert nx.value_and_grad(twice)(2.0)[0].item() == 6.0
    assert nx.jit(nx.grad(twice), compiler=compiler)(2.0).item() == 20.0
    # A program that was traced without a derivative has the rule, too.
    traced = nx.debug_expr(twice)(2.0)
    assert nx.grad(lambda x: nx.expr.call(traced, x))(2.0).item() == 20.0
    assert nx.jit(nx.grad(nx.jit(twice)), compiler=compiler)(2.0).item() == 20.0
    # Hooks of the forward rule are called if the rule is needed.
    seen = []
    hooked = nx.custom_vjp(lambda x: x * 2.0)
    hooked.defvjp(
        lambda x: (nx.hook(x, lambda x: seen.append(x.item())) * 2.0, x), lambda x, g: (g,)
    )
    nx.jit(hooked, compiler=compiler)(5.0).item()
    assert seen == []
    nx.jit(nx.grad(hooked), compiler=compiler)(5.0).item()
    assert seen == [5.0]


@nx.custom_jvp
def importable(x):
    return x * 2.0


@importable.defjvp
def _(primals, tangents):
    return tangents[0] * 5.0


def test_functions_with_rules_are_copied_and_pickled():
    assert copy.deepcopy({"activation": importable})["activation"] is importable
    assert pickle.loads(pickle.dumps(importable)) is importable
    local = nx.custom_vjp(importable, nondiff_argnums=())
    local.defvjp(_forward_of_local, _backward_of_local)
    assert copy.copy(local) is copy.deepcopy(local) is local
    restored = pickle.loads(pickle.dumps(local))
    assert restored is not local
    assert nx.grad(restored)(3.0).item() == 7.0


def _forward_of_local(x):
    return x * 2.0, ()


def _backward_of_local(residuals, cotangent):
    return (cotangent * 7.0,)


def test_custom_jvp_replaces_forward_and_reverse_mode():
    @nx.custom_jvp(nondiff_argnums=(1,))
    def power(x, n):
        return x**n

    @power.defjvp
    def rule(n, primals, tangents):
        return tangents[0] * 1000.0 * n

    assert power(2.0, 3) == 8.0
    assert nx.jvp(lambda x: power(x, 3), (2.0,), (1.0,))[1].item() == 3000.0
    assert nx.grad(lambda x: power(x, 3))(2.0).item() == 3000.0
    rows = nx.vmap(nx.grad(lambda x: power(x, 3)))(nx.tensor([1.0, 2.0]))
    assert rows.tolist() == [3000.0, 3000.0]


def test_custom_rules_accept_arguments_by_name():
    @nx.custom_jvp(nondiff_argnums="n")
    def power(x, n=3):
        return x**n

    @power.defjvp
    def rule(n, primals, tangents):
        return tangents[0] * 1000.0 * n

    for call in (power, lambda x: power(x, n=3), lambda x: power(n=3, x=x)):
        assert nx.grad(call)(2.0).item() == 3000.0
        assert call(2.0) == 8.0

    @nx.custom_vjp(nondiff_argnums=("function", 2))
    def apply(x, function, scale, *, more=None):
        return function(x) * scale

    def forward(x, function, scale):
        return function(x) * scale, x

    apply.defvjp(forward, lambda function, scale, x, cotangent: (cotangent * 100.0,))
    slope = nx.grad(lambda x: apply(x, scale=2.0, function=nx.sin))(0.5)
    assert slope.item() == 100.0
    # A keyword-only argument is allowed if the call uses its default.
    with pytest.raises(nx.ArgumentError, match="must not have keyword-only arguments; got 'more'"):
        nx.grad(lambda x: apply(x, nx.sin, 2.0, more=1))(0.5)
    with pytest.raises(nx.ArgumentError, match=r"custom_vjp: apply: .*missing.*'scale'"):
        nx.grad(lambda x: apply(x, nx.sin))(0.5)
    wrong = nx.custom_jvp(power.__wrapped__, nondiff_argnums=("x", "m"))
    wrong.defjvp(lambda primals, tangents: tangents)
    with pytest.raises(nx.ArgumentError, match=r"must be arguments of power \(x, n\); got 'm'"):
        nx.grad(lambda x: wrong(x, 3))(2.0)


def test_invalid_results_of_custom_rules_raise():
    x, y = nx.tensor([1.0, 2.0]), nx.tensor(3.0)

    def rules(result):
        @nx.custom_vjp
        def scaled(x, y):
            return x * y

        scaled.defvjp(lambda x, y: (x * y, None), lambda residuals, cotangents: result)
        return nx.grad(lambda x, y: nx.sum(scaled(x, y)))

    for result, got in [
        ((x,), "1"),
        (x, "a value of type Tensor"),
        (None, "a value of type NoneType"),
    ]:
        with pytest.raises(
            nx.ArgumentError,
            match=rf"scaled must return a tuple with a cotangent .* its 2 arguments; got {got}$",
        ):
            rules(result)(x, y)
    with pytest.raises(
        nx.NxlaError, match=r"must return a cotangent of type f32 for input 1; got f32\[2\]"
    ):
        rules((x, x))(x, y)

    @nx.custom_jvp
    def wrong(x):
        return nx.sum(x)

    with pytest.raises(nx.ArgumentError, match="wrong must have a rule"):
        wrong(x)
    wrong.defjvp(lambda primals, tangents: tangents[0])
    with pytest.raises(
        nx.NxlaError, match=r"must return a tangent of type f32 for result 0; got f32\[2\]"
    ):
        nx.grad(wrong)(x)
    alone = "; return the tangent alone, without the value"
    for count, hint in [(2, alone), (3, "")]:
        wrong.defjvp(lambda primals, tangents, count=count: (tangents[0],) * count)
        with pytest.raises(
            nx.ArgumentError, match=r"tangents of wrong must .* structure"
        ) as caught:
            nx.grad(wrong)(x)
        assert str(caught.value).endswith(f"; got ({', '.join('*' * count)}){hint}")


def _with_shifted_rule(kind):
    """Return a sine whose derivative is the shifted function itself."""
    shift = math.pi / 2

    if kind == "jvp":
        shifted = nx.custom_jvp(lambda x: nx.stop_grad(nx.sin(x)))
        shifted.defjvp(lambda primals, tangents: tangents[0] * shifted(primals[0] + shift))
        return shifted
    shifted = nx.custom_vjp(lambda x: nx.stop_grad(nx.sin(x)))
    if kind == "backward":
        shifted.defvjp(lambda x: (shifted(x), x), lambda x, g: (g * shifted(x + shift),))
    else:
        shifted.defvjp(lambda x: (shifted(x), shifted(x + shift)), lambda slope, g: (g * slope,))
    return shifted


@pytest.mark.parametrize("kind", ["jvp", "backward", "residual"])
def test_rules_that_call_their_function_have_all_derivatives(kind):
    function = _with_shifted_rule(kind)
    x = f64(0.3)
    expected = [math.sin(0.3), math.cos(0.3), -math.sin(0.3), -math.cos(0.3), math.sin(0.3)]
    derivative = function
    for order, value in enumerate(expected):
        assert derivative(x).item() == pytest.approx(value), order
        assert nx.jit(derivative)(x).item() == pytest.approx(value), order
        derivative = nx.grad(derivative)
    if kind == "jvp":

        def twice(x):
            return nx.jvp(lambda x: nx.jvp(function, (x,), (1.0,))[1], (x,), (1.0,))[1]

        assert twice(x).item() == pytest.approx(expected[2])
        assert nx.hessian(function)(x).item() == pytest.approx(expected[2])

        def looped(x):
            return nx.fori(0, 2, lambda _, y: function(y), x)

        def plain(x):
            return nx.sin(nx.sin(x))

        found, wanted = (nx.grad(nx.grad(f))(x).item() for f in (looped, plain))
        assert found == pytest.approx(wanted)
    pulled = nx.grad(lambda x: nx.vjp(function, x)[1](1.0)[0])
    assert pulled(x).item() == pytest.approx(expected[2])


def test_rules_that_call_each_other_have_all_derivatives():
    sine = nx.custom_jvp(lambda x: nx.stop_grad(nx.sin(x)))
    cosine = nx.custom_jvp(lambda x: nx.stop_grad(nx.cos(x)))
    sine.defjvp(lambda primals, tangents: tangents[0] * cosine(*primals))
    cosine.defjvp(lambda primals, tangents: -tangents[0] * sine(*primals))
    derivative = sine
    for value in (math.sin(0.3), math.cos(0.3), -math.sin(0.3), -math.cos(0.3), math.sin(0.3)):
        assert derivative(f64(0.3)).item() == pytest.approx(value)
        derivative = nx.grad(derivative)


def test_a_rule_may_differentiate_its_function():
    square = nx.custom_jvp(lambda x: x * x)
    square.defjvp(lambda primals, tangents: 10 * nx.jvp(lambda x: square(x), primals, tangents)[1])
    assert nx.grad(square)(3.0).item() == 60.0


def test_gradients_of_scans_match_differences(compiler):
    rows = nx.reshape(nx.linspace(-0.5, 0.9, 10, dtype=nx.float64), (5, 2))
    weights = f64([[0.3, -0.2], [0.5, 0.7]])

    def function(flat):
        weights = nx.reshape(flat, (2, 2))

        def step(hidden, row):
            hidden = nx.tanh(row @ weights + hidden)
            return hidden, nx.sum(hidden**2)

        hidden, norms = nx.scan(step, nx.zeros(2, dtype=nx.float64), rows)
        return nx.sum(hidden) + nx.sum(norms)

    flat = nx.flatten(weights)
    gradient = nx.jit(nx.grad(function), compiler=compiler)
    close(gradient(flat), differences(function, flat), 1e-7)


def test_gradients_of_calls_and_transformed_results(compiler):
    params = {"w": f64([1.0, 2.0]), "b": f64(0.5)}

    def model(params):
        preds = params["w"] * 3.0 + params["b"]
        return {"preds": preds, "loss": nx.sum(preds**2)}

    def loss(found):
        return found["loss"]

    expected = nx.grad(lambda p: model(p)["loss"])(params)
    with nx.default_options(compiler=compiler):
        close(nx.grad(params, lambda p: loss(model(p))), expected)
        result, gradient = nx.value_and_grad(params, model, loss)
        close((result, gradient), (model(params), expected))
        result, gradient = nx.value_and_grad(model, transform=loss)(params)
        close((result, gradient), (model(params), expected))
        value, gradient = nx.value_and_grad(params, lambda p: loss(model(p)))
        close((value, gradient), (model(params)["loss"], expected))
        # As part of another function.
        both = nx.jit(lambda params: nx.value_and_grad(params, model, loss))(params)
        close(both, (model(params), expected))
    with pytest.raises(nx.ArgumentError, match="transform: must be a function"):
        nx.value_and_grad(model, has_aux=True, transform=loss)


def test_gradients_by_name_and_path():
    def function(params, x, *, scale):
        return params["w"][1] * x * scale

    params = {"w": [1.0, 2.0], "b": 0.0}
    for argnums, expected in [
        ("x", 10.0),
        ("scale", 6.0),
        ("params['w'][1]", 15.0),
        (("params['w'][1]", 1), (15.0, 10.0)),
    ]:
        found = nx.grad(function, argnums)(params, 3.0, scale=5.0)
        close(found, expected)
        value, found = nx.value_and_grad(function, argnums)(params, 3.0, scale=5.0)
        close((value, found), (30.0, expected))
    with pytest.raises(nx.ArgumentError, match="grad: argnums: must name parameters of function"):
        nx.grad(function, "z")(params, 3.0, scale=5.0)


@pytest.mark.parametrize(
    "argnums",
    [(0, 0), (0, -2), [1, 0, 1], ("x", 0), ("x", "x"), (0, "x['a']"), ("x['a']", "x['a'][1]")],
)
@pytest.mark.parametrize(
    "derivative",
    [nx.grad, nx.value_and_grad, nx.jacfwd, nx.jacrev, nx.jacobian, nx.hessian],
)
def test_arguments_selected_twice_are_an_error(derivative, argnums):
    def function(x, y):
        return x["a"][1] * y

    x = {"a": [nx.tensor(2.0), nx.tensor(3.0)], "b": nx.tensor(1.0)}
    with pytest.raises(nx.ArgumentError, match="argnums: must not select a tensor twice; got"):
        derivative(function, argnums)(x, 2.0)
    with pytest.raises(nx.ArgumentError, match="argnums: must not select a tensor twice; got"):
        nx.hessian_diagonal(function, argnums)(x, 2.0)
    # Equal tensors in different positions are different arguments.
    close(nx.grad(lambda x, y: x * y, (0, 1))(y := nx.tensor(2.0), y), (2.0, 2.0))


def test_complex_gradient_errors_suggest_real_functions():
    for function in (nx.grad, nx.value_and_grad):
        with pytest.raises(nx.ArgumentError, match="differentiate its real, imag or abs"):
            function(lambda x: x * 1.0j)(1.0)
    assert nx.grad(lambda x: nx.abs(x * 2.0j))(3.0).item() == 2.0
    # A complex function with a complex derivative.
    close(nx.grad(lambda z: z**2)(nx.tensor(1.0 + 2.0j)), nx.tensor(2.0 + 4.0j), 1e-6)


@pytest.mark.parametrize("dtypes", [("f64", "s32"), ("s32", "f64"), ("f64", "u8"), ("bf16", "f64")])
def test_loop_states_may_have_incompatible_dtypes(dtypes):
    def looped(x, s):
        x, s = nx.astype(x, dtypes[0]), nx.astype(s, dtypes[1])
        x, s = nx.while_loop(
            lambda state: state[1] < 0,
            lambda state: (
                nx.astype(state[0] + state[1], dtypes[0]),
                nx.astype(nx.exp(state[1]), dtypes[1]),
            ),
            (x, s),
        )
        return nx.sum(nx.astype(x, "f32")) + nx.astype(s, "f32")

    for dtype in ("f32", "f64"):
        slopes = nx.grad(looped, argnums=(0, 1))(nx.ones((2, 3), dtype=dtype), nx.tensor(0.5))
        assert [slope.dtype for slope in slopes] == [dtype, "f32"]


def test_backward_rule_errors_name_the_user_function():
    cotangents = {
        "None": lambda g: (g, None),
        "a pair": lambda g: (g, (g, g)),
        "one": lambda g: (g,),
    }
    for rule in cotangents.values():

        @nx.custom_vjp
        def doubled(x, n):
            return x * n

        doubled.defvjp(lambda x, n: (x * n, None), lambda _, g, rule=rule: rule(g))
        gradient = nx.grad(lambda x, doubled=doubled: doubled(x, 2))
        with pytest.raises(nx.ArgumentError, match=r"^custom_vjp: backward rule: .*doubled must"):
            gradient(3.0)
    doubled.defvjp(lambda x, n: (x * n, None), lambda _, g: (nx.ones(3), g))
    with pytest.raises(nx.ArgumentError, match=r"^custom_vjp: rule: must return a cotangent"):
        nx.grad(lambda x: doubled(x, 2))(3.0)


@pytest.mark.parametrize("result", [{"loss": 1.0}, (1.0, 2.0), None, "loss"])
def test_functions_to_differentiate_return_a_tensor(result):
    kind = type(result).__name__
    message = f"^grad: function: must return a tensor to differentiate; got a {kind}"
    with pytest.raises(nx.ArgumentError, match=message):
        nx.grad(lambda x: result)(1.0)
