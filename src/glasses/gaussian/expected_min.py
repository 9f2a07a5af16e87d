"""E[min(y_1, ..., y_n, eta)] for y ~ N(mean, cov): the front door to the closed forms, QMC and EP.

    n = 1, 2    closed forms (``closed_form``), absolute error 1e-15 of the scale; rarer gains by QMC
    n > 2       QMC conditioned on an improvement (``qmc``): relative error of the gain about 1 % at worst
    EP()        the paper's method (``ep``), with its certificate and QMC as a safety net

Derivatives come with the value: dE/dmean_j = Z_j (the mass of the region where y_j is the smallest), dE/deta = Z_0,
dE/dcov. Those of QMC are the exact derivatives of its value, so they carry its sampling error; the masses are the same
numbers made non-negative and normalised.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from glasses.gaussian.closed_form import pair_gain
from glasses.gaussian.ep import EP
from glasses.gaussian.qmc import MAX_VARIABLES, QMC, mixture_terms
from glasses.runtime.program import program

_CLOSED_FORM_DIGITS = 1e-9


class Expectation(Protocol):
    """Something that computes log(eta - E[min(y, eta)])."""

    def log_gain(self, m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array) -> jax.Array: ...


_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, MAX_VARIABLES)  # variables, of which some are padding
_TOGETHER = 32  # problems of one call; the rest one by one


class Status(IntEnum):
    """How a value was obtained."""

    EXACT = 0
    CONVERGED = 1
    FELL_BACK = 2
    NOT_CONVERGED = 3

    @property
    def message(self) -> str:
        return {
            Status.EXACT: "closed form",
            Status.CONVERGED: "the method's own answer, within its certificate",
            Status.FELL_BACK: (
                "EP did not meet its certificate here, the value is the fallback's; raise EP(threshold=...) to keep EP's"
            ),
            Status.NOT_CONVERGED: (
                "EP did not converge or misses its certificate and has no fallback: use QMC() for this problem"
            ),
        }[self]


@dataclass(frozen=True)
class ExpectedMin:
    """The expected minimum of each problem of a batch; every field has the batch's shape first.

    ``value`` = eta - gain. ``masses`` (n + 1): Z_0, ..., Z_n. ``certificate``: |sum Z - 1| for EP, an estimate of the
    relative error of the gain for QMC, 0 for a closed form. ``status``: see ``Status``. ``d_mean``, ``d_cov``, ``d_eta``:
    derivatives of ``value``.
    """

    value: Any
    gain: Any
    log_gain: Any
    masses: np.ndarray
    certificate: Any
    status: Any
    d_mean: np.ndarray
    d_cov: np.ndarray
    d_eta: Any


def expected_min(mean: Any, cov: Any, eta: Any, method: QMC | EP | None = None) -> ExpectedMin:
    """E[min(y, eta)] for y ~ N(mean, cov). Batched: mean (..., n), cov (..., n, n), eta (...), broadcast against each other.

    ``method``: None for the default (closed forms up to n = 2, QMC beyond), ``QMC(samples)`` or ``EP(...)``.
    """
    m, S, e = (np.asarray(a, dtype=float) for a in (mean, cov, eta))
    if m.ndim < 1 or S.ndim < 2 or S.shape[-1] != m.shape[-1] or S.shape[-2] != m.shape[-1] or m.shape[-1] == 0:
        raise ValueError(f"mean must have shape (..., n) and cov (..., n, n) with n >= 1, got {m.shape} and {S.shape}.")
    n = m.shape[-1]
    if n > MAX_VARIABLES:
        raise ValueError(f"At most {MAX_VARIABLES} variables are supported, got {n}.")
    for name, a in (("mean", m), ("cov", S), ("eta", e)):
        if not np.all(np.isfinite(a)):
            raise ValueError(f"{name} must be finite, got {a[~np.isfinite(a)].flat[0]}.")
    if not np.allclose(S, np.swapaxes(S, -1, -2), rtol=1e-6, atol=1e-9 * float(np.max(np.abs(S), initial=0.0))):
        raise ValueError("cov must be symmetric: pass (cov + cov.T) / 2 if the difference is rounding.")
    if np.any(np.diagonal(S, axis1=-2, axis2=-1) < 0):
        raise ValueError("cov has a negative variance on its diagonal: a covariance cannot.")
    if (
        float(np.min(np.linalg.eigvalsh(S)[..., 0] + 1e-6 * np.max(np.diagonal(S, axis1=-2, axis2=-1), axis=-1), initial=0.0))
        < 0
    ):
        raise ValueError("cov is not positive semi-definite: a correlation in it exceeds 1, or rows contradict each other.")
    if method is not None and not isinstance(method, QMC | EP):
        raise ValueError(f"method must be None, QMC(...) or EP(...), got {method!r}.")

    batch = np.broadcast_shapes(m.shape[:-1], S.shape[:-2], e.shape)
    m, S, e = np.broadcast_to(m, (*batch, n)), np.broadcast_to(S, (*batch, n, n)), np.broadcast_to(e, batch)
    count = int(np.prod(batch, dtype=int))
    flat = (m.reshape(count, n), S.reshape(count, n, n), e.reshape(count))
    found = _padded(*flat, method or QMC())
    if method is None and n <= 2:
        found = _with_closed_form(found, *flat)
    log_gain, masses, certificate, status, d_mean, d_cov, d_eta = found
    gain = np.exp(log_gain)

    def shaped(a: np.ndarray) -> Any:
        out = a.reshape((*batch, *a.shape[1:]))
        return out if out.ndim else out[()]

    return ExpectedMin(
        value=shaped(flat[2] - gain),
        gain=shaped(gain),
        log_gain=shaped(log_gain),
        masses=shaped(masses),
        certificate=shaped(certificate),
        status=shaped(status),
        d_mean=shaped(d_mean),
        d_cov=shaped(d_cov),
        d_eta=shaped(d_eta),
    )


def _padded(m: np.ndarray, S: np.ndarray, eta: np.ndarray, method: QMC | EP) -> list[np.ndarray]:
    """Every problem, in programs for a few sizes: the variables are filled up, the problems taken 32 at a time or alone."""
    count, n = m.shape
    size = next(size for size in _SIZES if size >= n)
    valid = np.arange(size) < n
    m, S = np.pad(m, [(0, 0), (0, size - n)]), np.pad(S, [(0, 0), (0, size - n), (0, size - n)])
    parts: list[list[np.ndarray]] = []
    begin = 0
    while begin < count or not parts:
        some = _TOGETHER if count - begin >= _TOGETHER else min(1, count)
        rows = slice(begin, begin + some)
        parts.append([np.asarray(a) for a in _batch(m[rows], S[rows], eta[rows], valid, method=method)])
        begin += some
    log_gain, masses, certificate, status, d_m, d_S, d_eta = (np.concatenate(part) for part in zip(*parts, strict=True))
    return [log_gain, masses[:, : n + 1], certificate, status, d_m[:, :n], d_S[:, :n, :n], d_eta]


@program
def _batch(m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array, *, method: QMC | EP) -> tuple[jax.Array, ...]:
    """log gain, masses, certificate, status and derivatives of every problem, one after the other: memory does not grow
    with the batch."""

    def one(problem: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
        m, S, eta = problem
        log_gain, (d_m, d_S, d_eta) = jax.value_and_grad(method.log_gain, argnums=(0, 1, 2))(m, S, eta, valid)
        gain = jnp.exp(log_gain)
        d_m, d_eta = -gain * d_m, 1.0 - gain * d_eta
        masses = jnp.maximum(jnp.concatenate([d_eta[None], d_m]), 0.0)
        masses = masses / jnp.sum(masses)
        d_S = -0.5 * gain * (d_S + d_S.T)
        if isinstance(method, QMC):
            return log_gain, masses, _spread(m, S, eta, valid, method), jnp.asarray(int(Status.CONVERGED)), d_m, d_S, d_eta
        found = method.regions(m, S, eta, valid)
        failed = Status.NOT_CONVERGED if method.fallback is None else Status.FELL_BACK
        status = jnp.where(found.trusted, int(Status.CONVERGED), int(failed))
        return log_gain, masses, found.certificate, status, d_m, d_S, d_eta

    return jax.lax.map(one, (m, S, eta))


def _spread(m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array, method: QMC) -> jax.Array:
    """Half the relative difference of the gains from either half of the base points."""
    log_ei, ratio = mixture_terms(m, S, eta, valid, method.samples)
    half = method.samples // 2
    weight = jax.nn.softmax(log_ei)
    first, second = weight @ jnp.mean(ratio[:, :half], axis=1), weight @ jnp.mean(ratio[:, half:], axis=1)
    return jnp.abs(first - second) / (first + second)


def _with_closed_form(found: list[np.ndarray], m: np.ndarray, S: np.ndarray, eta: np.ndarray) -> list[np.ndarray]:
    """Replace QMC by the closed forms; for n = 1 they are the same number."""
    log_gain, masses, certificate, status, d_mean, d_cov, d_eta = (a.copy() for a in found)
    if m.shape[1] == 1:
        return [log_gain, masses, np.zeros_like(certificate), np.full_like(status, Status.EXACT), d_mean, d_cov, d_eta]
    gain, exact, slope = pair_gain(m, S, eta)
    scale = np.sqrt(np.max(np.diagonal(S, axis1=1, axis2=2), axis=1)) + np.max(np.abs(m - eta[:, None]), axis=1)
    apart = S[:, 0, 0] + S[:, 1, 1] - 2.0 * S[:, 0, 1] > 1e-20 * scale**2  # else the derivatives are not defined
    good = (gain > _CLOSED_FORM_DIGITS * scale) & apart
    log_gain[good] = np.log(gain[good])
    masses[good], certificate[good], status[good] = exact[good], 0.0, Status.EXACT
    d_mean[good], d_eta[good], d_cov[good] = exact[good, 1:], exact[good, 0], slope[good]
    return [log_gain, masses, certificate, status, d_mean, d_cov, d_eta]
