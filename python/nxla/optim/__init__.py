"""Gradient-based optimization, as pure functions over containers of parameters.

An optimizer is a pair of functions, ``init(params)`` and ``update(grads, state, params)``, and its
state is a container like any other: it can be saved, donated and moved to devices like parameters.
The interface, the names and the defaults are the same as in the library optax, if it has the
function.

>>> import nxla as nx
>>> optimizer = nx.optim.chain(nx.optim.clip_by_global_norm(1.0), nx.optim.adam(0.1))
>>> params = {"w": nx.tensor([3.0, -2.0])}
>>> state = optimizer.init(params)
>>> @nx.jit(donate_argnums=(0, 1))
... def step(params, state):
...     slopes = nx.grad(lambda params: nx.sum(params["w"] ** 2))(params)
...     updates, state = optimizer.update(slopes, state, params)
...     return nx.optim.apply_updates(params, updates), state
>>> for _ in range(200):
...     params, state = step(params, state)
>>> nx.all_close(params["w"], 0.0, atol=1e-2).item()
True

States of parameters in floats of fewer than 32 bits are ``float32``, and so is the arithmetic of
each step: squares of ``float16`` gradients overflow from 256 on, and an epsilon of 1e-8 is zero.
Updates have the dtypes of the gradients. Hyperparameters do not change the dtypes of states.

Numbers such as the learning rate are constants of the program; they may also be tensors, such as
arguments of a jitted function. A schedule is a function from the number of previous steps, which is
part of the state, to the rate.
"""

from nxla import _hints
from nxla.optim.layerwise import (
    adafactor,
    clip_by_block_rms,
    lamb,
    muon,
    scale_by_factored_rms,
    scale_by_muon,
    scale_by_param_block_rms,
    scale_by_trust_ratio,
)
from nxla.optim.optimizers import adagrad, adam, adamw, lion, rmsprop, sgd
from nxla.optim.quasi_newton import lbfgs, scale_by_lbfgs
from nxla.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    exponential_decay,
    join_schedules,
    linear_schedule,
    piecewise_constant_schedule,
    warmup_cosine_decay_schedule,
)
from nxla.optim.transforms import (
    GradientTransformation,
    add_decayed_weights,
    apply_updates,
    chain,
    clip,
    clip_by_global_norm,
    global_norm,
    identity,
    scale,
    scale_by_adam,
    scale_by_learning_rate,
    scale_by_lion,
    scale_by_rms,
    scale_by_rss,
    scale_by_schedule,
    trace,
)
from nxla.optim.wrappers import MultiSteps, ema, incremental_update, masked

# The names that are imported above. `make stubs` writes this list.
__all__ = [
    "GradientTransformation",
    "MultiSteps",
    "adafactor",
    "adagrad",
    "adam",
    "adamw",
    "add_decayed_weights",
    "apply_updates",
    "chain",
    "clip",
    "clip_by_block_rms",
    "clip_by_global_norm",
    "constant_schedule",
    "cosine_decay_schedule",
    "ema",
    "exponential_decay",
    "global_norm",
    "identity",
    "incremental_update",
    "join_schedules",
    "lamb",
    "lbfgs",
    "linear_schedule",
    "lion",
    "masked",
    "muon",
    "piecewise_constant_schedule",
    "rmsprop",
    "scale",
    "scale_by_adam",
    "scale_by_factored_rms",
    "scale_by_lbfgs",
    "scale_by_learning_rate",
    "scale_by_lion",
    "scale_by_muon",
    "scale_by_param_block_rms",
    "scale_by_rms",
    "scale_by_rss",
    "scale_by_schedule",
    "scale_by_trust_ratio",
    "sgd",
    "trace",
    "warmup_cosine_decay_schedule",
]

_hints.install_missing_names(globals())
