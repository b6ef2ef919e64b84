"""Follow a target with a Kalman filter, sequentially and by an associative scan."""

import nxla as nx

STEP = nx.tensor([[1.0, 0.1], [0.0, 1.0]])
LOOK = nx.tensor([[1.0, 0.0]])
DRIFT = 0.01 * nx.eye(2)
NOISE = nx.tensor([[0.25]])


def update(state, seen):
    mean, spread = state
    mean, spread = STEP @ mean, STEP @ spread @ STEP.T + DRIFT
    surprise = seen - LOOK @ mean
    weight = LOOK @ spread @ LOOK.T + NOISE
    gain = nx.linalg.solve(weight, LOOK @ spread).T
    likelihood = -0.5 * (
        nx.dot(surprise, nx.linalg.solve(weight, surprise)) + nx.linalg.slogdet(weight)[1]
    )
    state = mean + gain @ surprise, spread - gain @ LOOK @ spread
    return state, (state[0], likelihood)


def simulate(key, steps):
    keys = nx.random.split(key)
    push = nx.random.normal_split(keys[0], shape=(steps, 2)) * 0.1
    noise = nx.random.normal_split(keys[1], shape=(steps, 1)) * 0.5
    move = lambda x, z: (STEP @ x + z[0], LOOK @ (STEP @ x + z[0]) + z[1])  # noqa: E731
    return nx.scan(move, nx.zeros(2), (push, noise))[1]


def run(steps=200, targets=8):
    keys = nx.random.split(nx.random.key(0), parts=targets)
    seen = nx.vmap(lambda key: simulate(key, steps))(keys)
    begin = (nx.zeros(2), nx.eye(2))
    means, likelihoods = nx.jit(nx.vmap(lambda row: nx.scan(update, begin, row)[1]))(seen)
    return {"means": means, "likelihood": nx.sum(likelihoods, axis=1)}


if __name__ == "__main__":
    print(run()["likelihood"])
