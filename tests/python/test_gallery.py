"""Ten well-known uses of derivatives, compared with closed forms and published values."""

import math

import pytest

import nxla as nx


def f64(values):
    return nx.tensor(values, dtype=nx.float64)


def close(found, expected, tolerance=1e-9):
    found, expected = nx.tree.flatten(found)[0], nx.tree.flatten(expected)[0]
    for one, other in zip(found, expected, strict=True):
        assert nx.all_close(one, other, rtol=tolerance, atol=tolerance).item(), (one, other)


def nested(function, *argnums):
    """Differentiate a function of numbers with respect to each argument."""
    for argnum in argnums:
        function = nx.grad(function, argnum)
    return function


def test_greeks_of_an_option_to_third_order(compiler):
    """Haug, The Complete Guide to Option Pricing Formulas (2007), chapter 2."""

    def price(spot, sigma, rate, time):
        strike = 100.0
        root = sigma * nx.sqrt(time)
        d1 = (nx.log(spot / strike) + (rate + sigma**2 / 2.0) * time) / root
        cdf = lambda x: 0.5 * (1.0 + nx.erf(x / math.sqrt(2.0)))  # noqa: E731
        return spot * cdf(d1) - strike * nx.exp(-rate * time) * cdf(d1 - root)

    spot, sigma, rate, time = 105.0, 0.2, 0.03, 0.75
    root = sigma * math.sqrt(time)
    d1 = (math.log(spot / 100.0) + (rate + sigma**2 / 2.0) * time) / root
    d2 = d1 - root
    density = math.exp(-(d1**2) / 2.0) / math.sqrt(2.0 * math.pi)
    delta = 0.5 * (1.0 + math.erf(d1 / math.sqrt(2.0)))
    second = 0.5 * (1.0 + math.erf(d2 / math.sqrt(2.0)))
    gamma = density / (spot * root)
    vega = spot * density * math.sqrt(time)
    discounted = 100.0 * math.exp(-rate * time)
    closed = {
        (0,): delta,
        (1,): vega,
        (2,): discounted * time * second,
        (3,): spot * density * sigma / (2.0 * math.sqrt(time)) + rate * discounted * second,
        (0, 0): gamma,
        (0, 1): -density * d2 / sigma,
        (1, 1): vega * d1 * d2 / sigma,
        (0, 0, 0): -gamma / spot * (d1 / root + 1.0),
        (0, 0, 1): gamma * (d1 * d2 - 1.0) / sigma,
        (1, 1, 1): -vega / sigma**2 * (d1 * d2 * (1.0 - d1 * d2) + d1**2 + d2**2),
    }

    @nx.jit(compiler=compiler)
    def greeks(*args):
        return [nested(price, *argnums)(*args) for argnums in closed]

    found = greeks(*map(f64, (spot, sigma, rate, time)))
    for argnums, value in zip(closed, found, strict=True):
        assert value.item() == pytest.approx(closed[argnums], rel=1e-9), argnums


def rosenbrock(x):
    return nx.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])


def conjugate_gradients(product, b, steps):
    """Solve a system with a positive definite matrix, given only products with vectors."""

    def step(state, _):
        x, r, p, rr = state
        q = product(p)
        alpha = rr / nx.maximum(nx.sum(p * q), 1e-300)
        r_next = r - alpha * q
        rr_next = nx.sum(r_next**2)
        beta = rr_next / nx.maximum(rr, 1e-300)
        return (x + alpha * p, r_next, r_next + beta * p, rr_next), ()

    start = (nx.zeros_like(b), b, b, nx.sum(b**2))
    return nx.scan(step, start, None, length=steps)[0][0]


def test_newton_and_gauss_newton_find_the_minimum_of_rosenbrock():
    """The minimum is 0 at (1, 1): Rosenbrock, The Computer Journal 3 (1960)."""

    @nx.jit
    def newton(x):
        loss = lambda x: nx.sum(rosenbrock(x) ** 2)  # noqa: E731

        def step(x, _):
            return x - nx.linalg.solve(nx.hessian(loss)(x), nx.grad(loss)(x)), ()

        return nx.scan(step, x, None, length=8)[0]

    @nx.jit
    def gauss_newton(x):
        def step(x, _):
            residual, pull = nx.vjp(rosenbrock, x)
            _, push = nx.linearize(rosenbrock, x)
            update = conjugate_gradients(lambda v: pull(push(v))[0], pull(residual)[0], 2)
            return x - update, ()

        return nx.scan(step, x, None, length=4)[0]

    for method in (newton, gauss_newton):
        close(method(f64([-1.2, 1.0])), f64([1.0, 1.0]), 1e-6)


def test_laplacian_by_forward_over_reverse(compiler):
    def laplacian(function, x):
        n = x.shape[0]
        second_derivative = lambda v: nx.sum(nx.jvp(nx.grad(function), (x,), (v,))[1] * v)  # noqa: E731
        return nx.sum(nx.vmap(second_derivative)(nx.eye(n, dtype=nx.float64)))

    x = f64([0.3, -0.4, 1.2, 0.7])
    squared = nx.sum(x**2).item()

    @nx.jit(compiler=compiler)
    def both(x):
        gaussian = lambda x: nx.exp(-nx.sum(x**2))  # noqa: E731
        potential = lambda x: 1.0 / nx.sum(x**2)  # noqa: E731
        return laplacian(gaussian, x), laplacian(potential, x)

    bump, harmonic = both(x)
    assert bump.item() == pytest.approx((4.0 * squared - 8.0) * math.exp(-squared))
    # In four dimensions, 1 / r² is harmonic.
    assert abs(harmonic.item()) < 1e-12
    close(laplacian(lambda x: nx.sum(x**4), x), nx.sum(12.0 * x**2))


def test_neural_ode_forward_and_reverse_derivatives(compiler):
    """The solution of a linear equation is the exponential of the matrix."""
    a = f64([[-0.3, 1.0], [-1.0, -0.1]])
    y = f64([1.0, 0.5])

    def solve(a, y, end):
        def step(state):
            t, y = state
            h = nx.minimum(0.05, end - t)
            k1 = a @ y
            k2 = a @ (y + h / 2 * k1)
            k3 = a @ (y + h / 2 * k2)
            k4 = a @ (y + h * k3)
            return t + h, y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

        return nx.while_loop(lambda s: s[0] < end - 1e-12, step, (nx.zeros_like(end), y))[1]

    def exponential(a):
        term = total = nx.eye(2, dtype=nx.float64)
        for n in range(1, 30):
            term = term @ a / n
            total = total + term
        return total

    def exact(a, y, end):
        return exponential(a * end) @ y

    end = f64(2.0)
    weights = f64([1.0, -2.0])
    loss = lambda solver: lambda *args: nx.sum(solver(*args) * weights)  # noqa: E731
    found = nx.jit(nx.grad(loss(solve), argnums=(0, 1)), compiler=compiler)(a, y, end)
    expected = nx.grad(loss(exact), argnums=(0, 1))(a, y, end)
    close(found, expected, 1e-5)
    tangent = nx.jit(lambda a: nx.jvp(lambda a: solve(a, y, end), (a,), (a,))[1], compiler=compiler)
    close(tangent(a), nx.jvp(lambda a: exact(a, y, end), (a,), (a,))[1], 1e-5)


def test_likelihood_of_a_kalman_filter_with_its_hessian():
    """For a random walk with noise, the filter must agree with the joint normal distribution."""
    data = nx.sin(nx.arange(12, dtype=nx.float64)) * 1.5

    def filtered(log_variances):
        walk, noise = nx.exp(log_variances[0]), nx.exp(log_variances[1])

        def step(state, y):
            mean, variance, total = state
            variance = variance + walk
            spread = variance + noise
            gain = variance / spread
            total = total - 0.5 * (nx.log(2 * math.pi * spread) + (y - mean) ** 2 / spread)
            return (mean + gain * (y - mean), (1 - gain) * variance, total), mean

        start = (f64(0.0), f64(1.0), f64(0.0))
        return nx.scan(step, start, data)[0][2]

    def joint(log_variances):
        walk, noise = nx.exp(log_variances[0]), nx.exp(log_variances[1])
        n = data.shape[0]
        times = nx.arange(n, dtype=nx.float64) + 1.0
        common = nx.minimum(times[:, None], times[None, :])
        covariance = 1.0 + walk * common + noise * nx.eye(n, dtype=nx.float64)
        factor = nx.linalg.cholesky(covariance)
        whitened = nx.linalg.triangular_solve(factor, data)
        half_log_det = nx.sum(nx.log(nx.take_diagonal(factor)))
        return -0.5 * nx.sum(whitened**2) - half_log_det - 0.5 * n * math.log(2 * math.pi)

    point = f64([-1.0, -0.5])
    close(filtered(point), joint(point))
    close(nx.grad(filtered)(point), nx.grad(joint)(point))
    close(nx.hessian(filtered)(point), nx.hessian(joint)(point), 1e-8)


def test_meta_learning_through_five_training_steps(compiler):
    """For a parabola, the weight after five steps and its derivative have closed forms."""
    curvature, target, start = 1.5, 0.8, -1.0

    def trained(rate, start):
        loss = lambda w: 0.5 * curvature * (w - target) ** 2  # noqa: E731
        return nx.fori(0, 5, lambda _, w: w - rate * nx.grad(loss)(w), start)

    meta = nx.jit(nx.grad(trained, argnums=(0, 1)), compiler=compiler)
    by_rate, by_start = meta(f64(0.3), f64(start))
    shrinks = 1.0 - 0.3 * curvature
    assert by_start.item() == pytest.approx(shrinks**5)
    assert by_rate.item() == pytest.approx(-5.0 * curvature * shrinks**4 * (start - target))


def test_hamiltonian_monte_carlo_of_a_normal_distribution():
    """Duane et al., Physics Letters B 195 (1987): leapfrog steps turn around exactly."""
    precision = f64([[2.0, 0.6], [0.6, 1.0]])
    mean = f64([1.0, -2.0])

    def energy(x):
        return 0.5 * nx.sum((x - mean) * (precision @ (x - mean)))

    def leapfrog(x, p, steps=12, size=0.25):
        force = lambda x: -nx.grad(energy)(x)  # noqa: E731

        def step(_, state):
            x, p = state
            p = p + 0.5 * size * force(x)
            x = x + size * p
            return x, p + 0.5 * size * force(x)

        return nx.fori(0, steps, step, (x, p))

    x, p = f64([0.3, 0.2]), f64([0.5, -1.0])
    end_state = nx.jit(leapfrog)(x, p)
    reversed_state = nx.jit(leapfrog)(end_state[0], -end_state[1])
    close((reversed_state[0], -reversed_state[1]), (x, p))

    @nx.jit
    def chain(x, momenta, levels):
        def step(x, drawn):
            p, level = drawn
            proposed, momentum = leapfrog(x, p)
            before = energy(x) + 0.5 * nx.sum(p**2)
            after = energy(proposed) + 0.5 * nx.sum(momentum**2)
            x = nx.where(nx.log(level) < before - after, proposed, x)
            return x, x

        return nx.scan(step, x, (momenta, levels))[1]

    key = nx.random.key(7)
    momenta, key = nx.random.normal(key, shape=(1500, 2), dtype=nx.float64)
    levels, key = nx.random.uniform(key, shape=(1500,), dtype=nx.float64)
    samples = chain(x, momenta, levels)[100:]
    close(nx.mean(samples, axis=0), mean, 0.1)
    covariance = nx.linalg.inv(precision)
    centered = samples - mean
    close(nx.matrix_transpose(centered) @ centered / samples.shape[0], covariance, 0.15)


def test_implicit_differentiation_by_a_custom_rule():
    """The derivative of the root of x³ + a x = b by a is -x / (3 x² + a) for any solver."""

    @nx.custom_vjp
    def root(a, b):
        def better(x):
            return x - (x**3 + a * x - b) / (3.0 * x**2 + a)

        return nx.fori(0, 30, lambda _, x: better(x), b)

    def forward(a, b):
        x = root(a, b)
        return x, (x, a)

    def backward(residuals, g):
        x, a = residuals
        slope = 3.0 * x**2 + a
        return -g * x / slope, g / slope

    root.defvjp(forward, backward)
    a, b = f64(2.0), f64(5.0)
    x = root(a, b).item()
    assert x**3 + 2.0 * x == pytest.approx(5.0)
    found = nx.jit(nx.grad(root, argnums=(0, 1)))(a, b)
    slope = 3.0 * x**2 + 2.0
    assert [g.item() for g in found] == pytest.approx([-x / slope, 1.0 / slope])
    # The gradient through the iterations is the same, but takes thirty backward steps.
    close(nx.grad(root.__wrapped__, argnums=(0, 1))(a, b), found)
    nx.testing.check_grads(root, (a, b), order=2, modes=("rev",))


def test_score_matching_finds_a_normal_distribution(compiler):
    """Hyvärinen, JMLR 6 (2005), section 3.1: mean and inverse covariance of the sample."""
    draws = nx.sin(nx.reshape(nx.arange(60, dtype=nx.float64) ** 1.5, (30, 2)))
    data = draws @ f64([[1.0, 0.4], [0.0, 0.7]]) + f64([0.5, -1.0])

    def loss(params):
        score = lambda x: -params["precision"] @ (x - params["mean"])  # noqa: E731

        def one(x):
            spread = nx.sum(nx.take_diagonal(nx.jacfwd(score)(x)))
            return spread + 0.5 * nx.sum(score(x) ** 2)

        return nx.mean(nx.vmap(one)(data))

    mean = nx.mean(data, axis=0)
    centered = data - mean
    covariance = nx.matrix_transpose(centered) @ centered / data.shape[0]
    best = {"mean": mean, "precision": nx.linalg.inv(covariance)}
    gradient = nx.jit(nx.grad(loss), compiler=compiler)(best)
    for leaf in nx.tree.leaves(gradient):
        assert nx.max(nx.abs(leaf)).item() < 1e-9
    elsewhere = {"mean": mean + 0.1, "precision": best["precision"]}
    assert loss(elsewhere).item() > loss(best).item()


def test_physics_informed_network_of_a_beam():
    """A beam under an even load sags by 5 / 384 of load times length^4 over stiffness.

    The equation contains fourth derivatives of the ansatz by the coordinate.
    """
    powers = 6

    def deflection(weights, x):
        # The function is zero at both ends.
        return x * (1.0 - x) * nx.sum(weights * x ** nx.arange(powers, dtype=nx.float64))

    def residuals(weights):
        fourth = nested(deflection, 1, 1, 1, 1)
        second = nested(deflection, 1, 1)
        inside = nx.linspace(0.05, 0.95, 12, dtype=nx.float64)
        bends = nx.vmap(fourth, in_axes=(None, 0))(weights, inside) - 1.0
        ends = nx.vmap(second, in_axes=(None, 0))(weights, f64([0.0, 1.0]))
        return nx.concat([bends, ends])

    weights = nx.zeros(powers, dtype=nx.float64)
    # The ansatz is linear in its weights, so one step of Gauss-Newton is enough.
    residual, slopes = residuals(weights), nx.jacfwd(residuals)(weights)
    transposed = nx.matrix_transpose(slopes)
    weights = weights - nx.linalg.solve(transposed @ slopes, transposed @ residual)
    assert deflection(weights, f64(0.5)).item() == pytest.approx(5.0 / 384.0, rel=1e-6)
    # Check the fourth derivative of a nonlinear function, tanh.
    t = math.tanh(0.7)
    closed = (1 - t**2) * (16 * t - 24 * t**3)
    assert nested(nx.tanh, 0, 0, 0, 0)(f64(0.7)).item() == pytest.approx(closed)
