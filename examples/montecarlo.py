"""Price an Asian option by Monte Carlo, with its derivatives by the parameters."""

import nxla as nx


def price(parameters, normals, strike, years):
    start, volatility, rate = parameters
    dt = years / normals.shape[1]
    steps = (rate - 0.5 * volatility**2) * dt + volatility * dt**0.5 * normals
    paths = start * nx.exp(nx.cumulative_sum(steps, axis=1))
    payoff = nx.maximum(nx.mean(paths, axis=1) - strike, 0.0)
    return nx.exp(-rate * years) * payoff


def run(paths=20000, days=64):
    normals = nx.random.normal_split(nx.random.key(0), shape=(paths, days))
    both = nx.concat([normals, -normals], axis=0)
    parameters = (nx.tensor(100.0), nx.tensor(0.2), nx.tensor(0.05))
    mean = lambda parameters, normals: nx.mean(price(parameters, normals, 100.0, 1.0))  # noqa: E731
    value, (delta, vega, rho) = nx.jit(nx.value_and_grad(mean))(parameters, both)
    worst = nx.quantile(price(parameters, both, 100.0, 1.0), 0.95)
    return {"value": value, "delta": delta, "vega": vega, "rho": rho, "worst": worst}


if __name__ == "__main__":
    print({name: round(x.item(), 4) for name, x in run().items()})
