"""Solve Burgers' equation on a circle with Fourier transforms."""

import nxla as nx


def step(u, dt, viscosity):
    waves = nx.fft.rfftfreq(len(u), d=1.0 / len(u))
    # Products of the upper third of the waves would alias to lower frequencies.
    kept = waves < len(u) / 3
    slope = lambda u: nx.fft.irfft(-0.5j * waves * kept * nx.fft.rfft(u**2))  # noqa: E731
    decay = nx.exp(-viscosity * waves**2 * dt)
    spread = lambda u: nx.fft.irfft(decay * nx.fft.rfft(u))  # noqa: E731
    first = slope(u)
    return spread(u + 0.5 * dt * first) + 0.5 * dt * slope(spread(u + dt * first))


def run(points=256, steps=400, dt=0.002, viscosity=0.05):
    x = nx.linspace(0.0, 2 * nx.pi, points, endpoint=False)
    start = nx.sin(x) + 0.5 * nx.cos(2 * x)
    solve = lambda u: nx.fori(0, steps, lambda _, u: step(u, dt, viscosity), u)  # noqa: E731
    u = nx.jit(solve)(start)
    return {"u": u, "energy": nx.mean(u**2)}


if __name__ == "__main__":
    print(run()["u"][::32])
