"""Leave-one-out errors: each observation predicted from all the others.

    z_i = alpha_i / sqrt((K + noise I)^-1_ii),   alpha = (K + noise I)^-1 (y - c)                           [eq:loo]

is the standardised error of the prediction of y_i without y_i (Rasmussen and Williams 2006, 5.10-5.12). If the model is right,
the mean of z^2 is about 1; far above 1, its predicted variances are too small.
"""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.linalg import solve_triangular

from glasses.runtime.program import program
from glasses.surrogate.posterior import Posterior


@program
def leave_one_out(post: Posterior) -> jax.Array:
    """[eq:loo], (N,); 0 on the padding."""
    inverse = solve_triangular(post.L, jnp.eye(post.L.shape[0]), lower=True)
    return post.alpha / jnp.sqrt(jnp.sum(inverse * inverse, axis=0))


def trusted_horizon(post: Posterior, n: int) -> int:
    """n, or less where leave-one-out errors are larger than the model predicts.

    n min(1, (1 + 2 sqrt(2/N)) / mean z^2), at least 1 [eq:guard]: two standard deviations of a mean of N squared normals pass.
    """
    z, N = np.asarray(leave_one_out(post)), int(post.n)
    excess = float(np.sum(z * z)) / N
    return max(1, min(n, round(n * (1.0 + 2.0 * (2.0 / N) ** 0.5) / max(excess, 1e-300))))
