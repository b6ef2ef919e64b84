"""Minimize Rosenbrock's function with L-BFGS, compiled whole."""

import nxla as nx


def rosenbrock(x):
    return nx.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def direction(g, steps, changes):
    """The product of the inverse Hessian and the gradient, by the last steps and changes."""
    rho = nx.sum(steps * changes, axis=1)
    rho = nx.where(rho > 1e-10, 1.0 / nx.where(rho > 1e-10, rho, 1.0), 0.0)

    def back(q, row):
        s, y, r = row
        a = r * nx.dot(s, q)
        return q - a * y, a

    q, shares = nx.scan(back, g, (steps, changes, rho), reverse=True)
    length = nx.dot(changes[-1], changes[-1])
    q = q * nx.where(length > 0, nx.dot(steps[-1], changes[-1]) / nx.maximum(length, 1e-30), 1.0)

    def forth(q, row):
        s, y, r, a = row
        return q + s * (a - r * nx.dot(y, q)), ()

    return -nx.scan(forth, q, (steps, changes, rho, shares))[0]


def lbfgs(f, x, count, memory):
    def step(_, state):
        x, g, steps, changes = state
        d = direction(g, steps, changes)
        slope = nx.dot(d, g)
        # Armijo's rule: halve the step until the value decreases enough.
        enough = lambda t: f(x + t * d) <= f(x) + 1e-4 * t * slope  # noqa: E731
        t = nx.while_loop(lambda t: ~enough(t) & (t > 1e-8), lambda t: t * 0.5, 1.0)
        new = x + t * d
        slopes = nx.grad(f)(new)
        keep = lambda rows, row: nx.concat([rows[1:], row[None]], axis=0)  # noqa: E731
        return new, slopes, keep(steps, new - x), keep(changes, slopes - g)

    empty = nx.zeros((memory, x.shape[0]))
    return nx.fori(0, count, step, (x, nx.grad(f)(x), empty, empty))[0]


def run(size=10, count=60, memory=5):
    start = nx.full((size,), -0.5)
    x = nx.jit(lambda x: lbfgs(rosenbrock, x, count, memory))(start)
    return {"x": x, "f": rosenbrock(x)}


if __name__ == "__main__":
    print(run()["x"])
