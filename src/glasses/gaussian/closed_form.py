"""Expected minimum of one or two Gaussian variables and a threshold, exactly.

One variable: eta - s h((eta - m) / s), see ``univariate``. Two variables: with w = (eta - y_1, y_2 - y_1) on the region
where y_1 is the smallest (and the mirror image), the mean of a truncated bivariate normal (Rosenbaum 1961),

    E[w_1; w > 0] = mu_1 Phi_2(a, b; r) + s_1 (phi(a) Phi((b - r a) / c) + r phi(b) Phi((a - r b) / c))       [eq:pair]

a = mu_1 / s_1, b = mu_2 / s_2, c = sqrt(1 - r^2), and Phi_2 from Owen's T function. Absolute error 1e-15 of the scale: a
gain below 1e-9 of it has lost its digits, and ``expected_min`` then asks QMC. NumPy only; every argument broadcasts.
"""

from __future__ import annotations

import numpy as np


def bivariate_cdf(a: np.ndarray, b: np.ndarray, r: np.ndarray) -> np.ndarray:
    """P(u < a, v < b) for standard normals u, v with correlation r (Owen 1956)."""
    from scipy.special import ndtr, owens_t

    a, b, r = np.broadcast_arrays(*(np.asarray(x, dtype=float) for x in (a, b, r)))
    a, b = np.where(a == 0, 1e-300, a), np.where(b == 0, 1e-300, b)
    c = np.sqrt(np.maximum((1.0 - r) * (1.0 + r), 1e-300))
    different = (a * b < 0) | ((a * b == 0) & (a + b < 0))
    with np.errstate(over="ignore", invalid="ignore"):
        t = owens_t(a, (b / a - r) / c) + owens_t(b, (a / b - r) / c)
    inside = 0.5 * (ndtr(a) + ndtr(b)) - t - np.where(different, 0.5, 0.0)
    upper = np.minimum(ndtr(a), ndtr(b))
    lower = np.maximum(ndtr(a) + ndtr(b) - 1.0, 0.0)
    return np.clip(np.where(r >= 1.0, upper, np.where(r <= -1.0, lower, inside)), lower, upper)


def pair_gain(m: np.ndarray, S: np.ndarray, eta: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gain eta - E[min(y_1, y_2, eta)] by [eq:pair], the masses Z_0, Z_1, Z_2 and dE/dS; m (..., 2), S (..., 2, 2).

    dE/dS_ij = 1/2 dZ_i/dm_j, with dZ_1/dm_2 = phi(b) Phi((a - r b) / c) / s_2 and the like.       [eq:pairslope]
    """
    from scipy.special import ndtr

    gain, masses, d_cov = np.zeros(np.shape(eta)), [], np.zeros(S.shape)
    for j, i in ((0, 1), (1, 0)):
        mu1, mu2 = eta - m[..., j], m[..., i] - m[..., j]
        v1 = S[..., j, j]
        v2 = S[..., i, i] + v1 - 2.0 * S[..., i, j]
        s1, s2 = np.sqrt(np.maximum(v1, 1e-300)), np.sqrt(np.maximum(v2, 1e-300))
        r = np.clip((v1 - S[..., i, j]) / (s1 * s2), -1.0, 1.0)
        a, b = mu1 / s1, mu2 / s2
        c = np.sqrt(np.maximum((1.0 - r) * (1.0 + r), 1e-32))
        mass = bivariate_cdf(a, b, r)
        edge1, edge2 = _phi(a) * ndtr((b - r * a) / c), _phi(b) * ndtr((a - r * b) / c)
        gain = gain + mu1 * mass + s1 * (edge1 + r * edge2)
        masses.append(mass)
        d_cov[..., j, i] = 0.5 * edge2 / s2
        d_cov[..., j, j] = -0.5 * (edge1 / s1 + edge2 / s2)
    return gain, np.stack([np.clip(1.0 - masses[0] - masses[1], 0.0, 1.0), *masses], axis=-1), d_cov


def _phi(x: np.ndarray) -> np.ndarray:
    return np.exp(-0.5 * x * x) / np.sqrt(2.0 * np.pi)
