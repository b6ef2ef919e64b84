"""Count how long points of the plane stay near, and draw Mandelbrot's set."""

import nxla as nx


def counts(x, y, limit):
    c = x + 1j * y[:, None]

    def step(_, state):
        z, count = state
        near = nx.abs(z) <= 2.0
        return nx.where(near, z * z + c, z), count + near

    begin = (nx.zeros_like(c), nx.zeros(c.shape, dtype=nx.int32))
    return nx.fori(0, limit, step, begin)[1]


def run(width=78, height=32, limit=50):
    x, y = nx.linspace(-2.1, 0.7, width), nx.linspace(-1.2, 1.2, height)
    return {"counts": nx.jit(counts, static_argnums=2)(x, y, limit)}


if __name__ == "__main__":
    for row in run()["counts"].tolist():
        print("".join(" .:-=+*%@#"[count * 9 // 50] for count in row))
