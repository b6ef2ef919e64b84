"""Run a training step of JAX in stages on a cluster of Dask, without JAX, and draw the stages."""

import base64
import zlib

import numpy as np

import nxla as nx

# The compressed bytes of `jax.export.export(jax.jit(step))(params, x, y).serialize()`, where:
#
#     def loss(params, x, y):
#         hidden = jnp.tanh(x @ params["w1"] + params["b1"])
#         return jnp.mean((hidden @ params["w2"] + params["b2"] - y) ** 2)
#
#     def step(params, x, y):
#         value, slopes = jax.value_and_grad(loss)(params, x, y)
#         return jax.tree.map(lambda p, slope: p - 0.2 * slope, params, slopes), value
STEP = zlib.decompress(
    base64.b64decode("""
eNqlVw1sHEcVnt25t+v1+LpZtstyXKYXc3XtxbEvZ9c1rp24rpNzQmLc1CQhMua6Pl+dS+4vvjs7VoQgoqipABVUEEIUoQohhBAC
1CKKKCJWiCDQClUIVYAQRRRRRFGhDX+i9fFmdx1f7NhYYtZv3nvfe/Nm5s3MeWaIEPIu8gD5AHkfeS+5jxwhBxG5hwwheifZQ3aT
DnIH2UVE2U92kreRW8kO0kKaSAg9CHk/UhnpItLjSE810NOSaNVMLiHf0bJG1xghLcjvRBIuDyBvCRPycaSLt6Cui3aUALl5Ucjm
ZbWNiCt7UXx/5SZ4qMFfFBXpZaQfB3Mpe3MmOGffd+i1eh0jNIcC/yMNuoi5I/ATfSSDPnr67iLVLfx6Gvwe/x/xBNaLDX64id+q
fTXuKw1+0rpYTa9vtK22V4JMyTiyEGZouJmQ8SOv3h+erLoz+ezBIxPphWR3sq97D5G6QAIuUUajumlHY/H2zkRv/+Aw/ZV8XHak
ZZXZTLd1rwRMZ4zp4hMCcvwz4+w6GnyMRXU9qnsV85n48zXGPI4h6AjTEyzBzAk2EWcxk61+jMVEsZnUia1MJvo1zagZFTXaJWA6
bdPVaNQ0bVu1BRtUTVv+iRaDVv5u+T0yxK0PRfk75DtkPmzwYdP6nGZ9VLM+oVnf0vjd8j6Z1xat85r1mGZ9VePfsA0KvBKFNmgH
hydN6OR9FnTxpMG/3goJSEIv9PEDMeiHAb7XgkGrR45S9ejksbYTbbDXkAgMwwiM8mkJDnBXgjGeleAQz0lwmBckGOdnJZiAozDZ
RVWbPcEdztUPoqx1jfPOCyjoTo13mVx92APP8I9ZcIyrjwotWuBOjKufQZl1HuNdBlc/78kV3vdF6wmNq1/y1PP8K61wgqtfE5rz
MJyEKa4+KRT7Ef4dG6b592xI80Gb722Nx2NtUixqrB6fsFCkQOEuheefj/FW0nDwRLElBKV1p5aGf+SVeCtlv/7t7//45zD96W94
Buvf8SzWf+BzWP+J57D+Cz/DC7wUA+25Z4/sQ0bIh0c9RojP7vHBYUeSpHq7xEcMPmjwsRh/i2zBWT5i8gOcj3GoWO+Ux/nhbhnn
Z0yd5Z13eZL9GNSse4Ul5emTZ2GR3y9LsCRpkoy7WtUckJtAFfUF1aGChKahABdA5Q7ABc+qCYvlUM1CCFQjHNYNM6IxwWDUoRLi
FzQ1lNJAOipNSGroNo1KELlPomrotSZaeyEcnYql45n2ud4zZomE75WAAtaqV2uibmeeHKagp5Z0ykADmvqIQW0q0VTCxKMZUZUE
4nY0mnrEQp3TVK+N3NKUXsRbY3rqUzrVIKbS1GcNGqOUpvpNqtF2VelHvM3RlC8g72SgfBl5VxdNDdhoN0EZQD3ZZRyPmxQgYagh
sVdAfERV4ojhb0MIual8G5U+3VS+i9zSaer7IsIAKD/ACIO9xvFwhOp4DG6MEA4iILcUWcaxDaOn6Gtkc0+aUmSb6nRUT41GqQ17
Y3aqWebUpGOIxHDKe1VQDiE/HPf5eExVbpGFMGEc1yM0DEfXhdeD8LoYyFtlzO5k4Hlsc0899XY84u1wVLNTt+EADHqSpphNw9hM
YVhNn9AUEUNKe7ju4zpkDghcB5r1cMPHDchNCdwAOOPhpo+bUDokcBPUsyzUzty5QqVfwX0kkX/sOG9HcLPrzGoVZdjpdwY6TQsg
isVscwYShyfGxodPOs4oG2ARw4jalhWLWBE94ujMmKnl8tVckSycypdIoTRby2fJzHzJnc24lWo6V0zP5gr4z4AUauhWzi8J2Z2d
FaxSm6nOu5mqkOez1dp8UUiZUrFSdYseOluqpueyxey8m08v9KDTbC2T9Qy5hdxs1m9YOeWWPRGDFSvlUsVTHqwVMx7oFk+Jtolq
oZw4fa6nu7xE8qVKhZzOVTsq1WzZSZxeKHc4iYa+iMA3OKyf1QYHnNYGDOfYgF0fYYdn3TLmBl/M4FbmIDmVWmFrLy9dW7k0JmIL
t+uAl63uoXwp4+Yr+1BwCzOz7j5y2j3XXatkK2l/gcql/FKhNF8+lasUSAF3S3exVkiX3flqrprDNV/D5rPlfA6TInpPe0uBXm6h
MtU+k2yfXlN6GpTFRsuisJwjS2vDJ0P+1ty3YYHE/tgA5orV7Fx2Hse8uMF24zL42E1zH2yr3MKWyRZmTBSuCx4Q3AUPlogvT+2Z
DibcqPfcqC+usy822JPTpODiySzXZjCdWw1CnEe32JCudZMUm3htinc3yKTp0VZ4UmK/eOGXr/6Nvk7/Tv9J/03/E1levrx8dXn5
ucvLV5bpVfoz+ia9TK948JVV+OcNXleXr98xxV03U65tuLPfjrQT6VaklsD3m2/U608hPY30DNIlJHE33b2J/4tofwnpZaRXkP6K
dA1JxP/kTe7zLSs33ud3rmzv/r1/ZXv37/zK5vfviyub378Poq3JH5IsN8zv0pv1eg/ahD7k20MC7why0TiOxZ6AJ30+E+gzSd9n
fe7E3Hch3Y7UseLn+cXgHXcxeOftCXz317f37snXt/fu+XR9e3l/pr69vL9U3zzvLd6Mm/Ctp3jSZmvwbP3GNdgd9Cfesy2Eed7N
XiR/HYgnC0vIw1bb0mCvro71IYwbwr5DQawdRPfe0s3BWvy/67pr3bpew/7+hfSG12/IwwR5P7xY/gsBmA/t
""")
)


def problem(seed=0):
    """Return parameters of a network with 32 hidden units, 256 points, and their products."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (256, 2))
    params = {
        "w1": rng.normal(0.0, 1.0, (2, 32)), "b1": np.zeros(32),
        "w2": rng.normal(0.0, 0.2, (32, 1)), "b2": np.zeros(1),
    }  # fmt: skip
    return tuple(nx.tree.map(lambda v: nx.tensor(v, dtype="f32"), (params, x, x[:, :1] * x[:, 1:])))


def run(steps=100, executor=None):
    """Train the network; return the losses, the parameters and the stages of a step."""
    params, x, y = problem()
    step = nx.debug_expr(nx.from_stablehlo(STEP))(params, x, y)
    stages = nx.graph.split(step, nx.graph.Policy.balanced(3))
    losses = []
    for _ in range(steps):
        params, loss = nx.graph.run(stages, params, x, y, executor=executor)
        losses.append(loss)
    return {"losses": nx.stack(losses), "params": params, "stages": stages}


if __name__ == "__main__":
    from distributed import Client

    with Client(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster:
        result = run(executor=cluster)
    first, last = result["losses"][0].item(), result["losses"][-1].item()
    print(f"loss {first:.3f} -> {last:.3f} in {len(result['stages'])} stages")
    nx.view(result["stages"]).save("import_jax.html")
