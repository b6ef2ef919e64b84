"""Move bodies that attract each other, by leapfrog; energy stays."""

import nxla as nx


def energy(x, v, m):
    gaps = nx.sqrt(nx.sum((x[:, None] - x[None]) ** 2, axis=-1) + 0.01)
    bound = nx.sum(nx.where(nx.eye(len(m)) > 0, 0.0, m[:, None] * m / gaps))
    return 0.5 * nx.sum(m[:, None] * v**2) - 0.5 * bound


def forces(x, m):
    return -nx.grad(lambda x: energy(x, nx.zeros_like(x), m))(x) / m[:, None]


def move(x, v, m, dt, steps):
    def step(state, _):
        x, v = state
        v = v + 0.5 * dt * forces(x, m)
        x = x + dt * v
        v = v + 0.5 * dt * forces(x, m)
        return (x, v), energy(x, v, m)

    return nx.scan(step, (x, v), None, length=steps)


def run(bodies=64, steps=200, dt=0.002):
    keys = nx.random.split(nx.random.key(0), parts=3)
    x = nx.random.normal_split(keys[0], shape=(bodies, 3))
    v = nx.random.normal_split(keys[1], shape=(bodies, 3)) * 0.3
    m = nx.random.uniform_split(keys[2], shape=(bodies,)) / bodies
    (x, v), energies = nx.jit(move, static_argnums=(3, 4))(x, v, m, dt, steps)
    return {"x": x, "energies": energies}


if __name__ == "__main__":
    print(run()["energies"][::50])
