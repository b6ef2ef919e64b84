"""Fit a Gaussian process to points, and choose its length and noise by maximum likelihood."""

import nxla as nx


def kernel(p, x, y):
    return nx.exp(p["size"] - 0.5 * ((x[:, None] - y) / nx.exp(p["length"])) ** 2)


def factor(p, x):
    noise = nx.exp(p["noise"]) + 1e-4
    return nx.linalg.cholesky(kernel(p, x, x) + noise * nx.eye(len(x)))


def loss(p, x, y):
    root = factor(p, x)
    z = nx.linalg.triangular_solve(root, y, lower=True)
    return 0.5 * nx.sum(z**2) + nx.sum(nx.log(nx.linalg.diagonal(root)))


def predict(p, x, y, at):
    root = factor(p, x)
    between = nx.linalg.triangular_solve(root, kernel(p, x, at), lower=True)
    mean = between.T @ nx.linalg.triangular_solve(root, y, lower=True)
    return mean, nx.exp(p["size"]) - nx.sum(between**2, axis=0)


def run(points=60, steps=100):
    x = nx.linspace(-3.0, 3.0, points)
    y = nx.sin(2.0 * x) + 0.2 * nx.random.normal_split(nx.random.key(0), shape=(points,))
    p = {name: nx.tensor(0.0) for name in ("length", "noise", "size")}
    slopes = nx.jit(nx.grad(loss))
    for _ in range(steps):
        p = nx.tree.map(lambda p, g: p - 0.01 * g, p, slopes(p, x, y))
    mean, variance = nx.jit(predict)(p, x, y, nx.linspace(-4.0, 4.0, 9))
    return {"p": p, "mean": mean, "variance": variance}


if __name__ == "__main__":
    print(run()["mean"])
