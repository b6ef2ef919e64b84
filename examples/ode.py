"""Solve Lotka's and Volterra's equations with steps that suit them, and fit their rates."""

import nxla as nx

# The coefficients of the Bogacki-Shampine method of order 3, with an error estimate.
ERROR = (-5 / 72, 1 / 12, 1 / 9, -1 / 8)


def system(y, p):
    return nx.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[2] * y[0] * y[1] - p[3] * y[1]])


def stages(y, h, p):
    k1 = system(y, p)
    k2 = system(y + 0.5 * h * k1, p)
    k3 = system(y + 0.75 * h * k2, p)
    new = y + h * (2 / 9 * k1 + 1 / 3 * k2 + 4 / 9 * k3)
    k4 = system(new, p)
    return new, h * sum(e * k for e, k in zip(ERROR, (k1, k2, k3, k4), strict=True))


def adaptive(y, end, p, tolerance):
    def step(state):
        t, y, h, count = state
        h = nx.minimum(h, end - t)
        new, error = stages(y, h, p)
        size = nx.max(nx.abs(error)) / tolerance
        fits = size <= 1.0
        factor = nx.clip(0.9 * nx.maximum(size, 1e-6) ** (-1 / 3), 0.2, 5.0)
        return t + nx.where(fits, h, 0.0), nx.where(fits, new, y), h * factor, count + 1

    begin = (nx.tensor(0.0), y, nx.tensor(0.1), nx.tensor(0))
    return nx.while_loop(lambda state: state[0] < end - 1e-6, step, begin)


def fixed(y, h, steps, p):
    return nx.scan(lambda y, _: (stages(y, h, p)[0],) * 2, y, None, length=steps)[1]


def run(end=10.0, steps=200, rounds=20):
    y, p = nx.tensor([1.0, 0.5]), nx.tensor([1.1, 0.4, 0.1, 0.4])
    t, last, _, count = nx.jit(lambda y, p: adaptive(y, end, p, 1e-4))(y, p)
    path = fixed(y, end / steps, steps, p)
    loss = lambda p: nx.mean((fixed(y, end / steps, steps, p) - path) ** 2)  # noqa: E731
    slope, guess = nx.jit(nx.value_and_grad(loss)), p * 1.05
    for _ in range(rounds):
        value, g = slope(guess)
        guess = guess - 0.0001 * g
    return {"t": t, "last": last, "guess": guess, "loss": value, "quick": count < steps}


if __name__ == "__main__":
    print(run())
