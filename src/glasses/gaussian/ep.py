"""Expected minimum by expectation propagation over the regions where each variable is the smallest.

For y ~ N(m, S) and a threshold eta the regions

    R_0 = {all y_i > eta},   R_j = {y_j <= eta, y_j <= y_i for all i}          [eq:regions]

partition space. In w = A_j y + b_j with w_j = eta - y_j and w_i = y_i - y_j (for R_0: w_i = y_i - eta) each is the positive
orthant, and EP for a Gaussian on an orthant (Cunningham, Hennig, Lacoste-Julien 2011) gives its mass Z_j and the mean of w.
Then

    E[min(y, eta)] = eta - sum_j Z_j E[w_j | R_j] / sum_k Z_k                  [eq:ep]

centred at eta (hence shift equivariant, which the paper's formula is not) and normalised (hence stable in n).

Certificate: the exact masses sum to one, so c = |sum_k Z_k - 1| measures EP's error at no cost. What matters is c relative to
the probability of an improvement, sum_{j>=1} Z_j: when an improvement is rare, the mass of R_0 hides the errors of the others.
Errors can also cancel in the sum, so a second identity is checked, also at no cost: dZ_i/dm_j is a Hessian and must be
symmetric,

    a = 1/2 sum_ij |dZ_i/dm_j - dZ_j/dm_i| s_i s_j / gain                      [eq:symmetry]

and max_j EI_j <= gain <= sum_j EI_j. EP is trusted where it converged, c <= threshold sum_{j>=1} Z_j, a <= 2 threshold and
the bounds hold.

Gradients, exact for exact masses: dE/dm_j = Z_j, dE/deta = Z_0, dE/dS_ij = 1/2 dZ_i/dm_j, and at an EP fixed point
dlogZ/dmu_w = nu - tau m_w with the sites held constant (no unrolling).                                   [eq:grad]

Sites: tau (precision), nu (precision times mean), both per coordinate of w. Cost: (n + 1) sweeps n^3 per problem.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import log_ndtr

from glasses.gaussian.qmc import QMC
from glasses.gaussian.univariate import LOG_SQRT_2PI, log_h

_JITTER = 1e-9


class Orthant(NamedTuple):
    """Mass and mean of a Gaussian on the positive orthant."""

    log_mass: jax.Array
    mean: jax.Array
    d_log_mass: jax.Array  # by the mean of w
    converged: jax.Array


class Regions(NamedTuple):
    """What EP says about [eq:regions]; index 0 of the masses is R_0."""

    log_gain: jax.Array
    log_masses: jax.Array  # (n + 1,), not normalised
    d_log_mass: jax.Array  # (n, n): dlogZ_j / dm_i
    certificate: jax.Array
    converged: jax.Array
    trusted: jax.Array


@dataclass(frozen=True)
class EP:
    """Expected minimum by EP; where it is not trusted (see the module's header), ``fallback`` answers.

    ``fallback=None`` keeps EP's own number, moved into its proven bounds where it left them.
    """

    threshold: float = 0.01
    fallback: QMC | None = field(default_factory=QMC)
    max_sweeps: int = 40
    tolerance: float = 1e-6

    def log_gain(self, m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array) -> jax.Array:
        """log(eta - E[min(y, eta)]) by [eq:ep], differentiated by [eq:grad]."""
        own, trusted = _log_gain(self, m, S, eta, valid)
        if self.fallback is None:
            return own
        other = self.fallback.log_gain(m, S, eta, valid)
        return jnp.where(trusted, jnp.where(trusted, own, 0.0), other)

    def regions(self, m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array) -> Regions:
        """Masses, gain and certificate of one problem."""
        n = m.shape[0]
        scale = jnp.sqrt(jnp.max(jnp.where(valid, jnp.diagonal(S), 0.0)))
        scale = jnp.where(scale > 0, scale, 1.0)  # EP works in units of the largest standard deviation
        m, S, eta = (m - eta) / scale, S / scale**2, jnp.zeros_like(eta)
        S = jnp.where(valid[:, None] & valid[None, :], S, 0.0) + jnp.diag(jnp.where(valid, _JITTER, 1.0))
        m = jnp.where(valid, m, 0.0)

        none = self._orthant(m, S, valid)  # R_0, eta = 0

        def region(j: jax.Array) -> tuple[Orthant, jax.Array]:
            me = jnp.arange(n) == j
            row, own = S[j], S[j, j]
            mu = jnp.where(me, -m[j], m - m[j])
            C = S - row[:, None] - row[None, :] + own
            C = jnp.where(me[:, None], own - row[None, :], C)
            C = jnp.where(me[None, :], own - row[:, None], C)
            C = jnp.where(me[:, None] & me[None, :], own, C)
            C = jnp.where(valid[:, None] & valid[None, :], C, 0.0) + jnp.diag(jnp.where(valid, _JITTER, 1.0))
            part = self._orthant(jnp.where(valid, mu, 0.0), C, valid)
            v = part.d_log_mass
            return part, jnp.where(me, -jnp.sum(v), v)  # A_j^T v

        parts, d_log = jax.vmap(region)(jnp.arange(n))
        log_masses = jnp.concatenate([none.log_mass[None], jnp.where(valid, parts.log_mass, -jnp.inf)])
        log_total = jax.scipy.special.logsumexp(log_masses)
        own_mean = jnp.maximum(jnp.diagonal(parts.mean), 1e-300)
        log_gain = jax.scipy.special.logsumexp(log_masses[1:] + jnp.log(own_mean)) - log_total + jnp.log(scale)
        d_mass = jnp.exp(log_masses[1:] - log_total)[:, None] * d_log / scale
        certificate = jnp.abs(jnp.expm1(log_total))
        converged = none.converged & jnp.all(parts.converged | ~valid)
        improving = jnp.exp(jax.scipy.special.logsumexp(log_masses[1:]))
        # max EI_j <= gain <= sum EI_j always: a number outside is wrong whatever the certificate says
        sd = jnp.sqrt(jnp.diagonal(S))
        log_ei = jnp.where(valid, jnp.log(sd) + log_h(-m / sd), -jnp.inf) + jnp.log(scale)
        slack = jnp.log1p(self.threshold)
        skew = 0.5 * jnp.sum(jnp.abs(d_mass - d_mass.T) * (sd[:, None] * sd[None, :]) * scale**2)
        symmetric = skew <= 2.0 * self.threshold * jnp.exp(log_gain)
        bounded = (log_gain <= jax.scipy.special.logsumexp(log_ei) + slack) & (log_gain >= jnp.max(log_ei) - slack)
        finite = jnp.isfinite(log_gain)
        converged = converged & finite
        trusted = converged & bounded & symmetric & (certificate <= self.threshold * improving)
        log_gain = jnp.clip(jnp.where(finite, log_gain, -jnp.inf), jnp.max(log_ei), jax.scipy.special.logsumexp(log_ei))
        return Regions(log_gain, log_masses, d_log / scale, certificate, converged, trusted)

    def _orthant(self, mu: jax.Array, C: jax.Array, valid: jax.Array) -> Orthant:
        """EP for N(mu, C) restricted to w >= 0."""
        n = mu.shape[0]
        used = jnp.max(jnp.where(valid, jnp.arange(n) + 1, 0))

        def site(i: jax.Array, state: Any) -> Any:
            Sigma, w, tau, nu, log_det = state
            precision = jnp.maximum(1.0 / Sigma[i, i] - tau[i], 1e-300)  # of the cavity
            shift = w[i] / Sigma[i, i] - nu[i]
            sd = precision**-0.5
            z = shift * sd
            r = jnp.exp(-0.5 * z * z - LOG_SQRT_2PI - log_ndtr(z))
            far, w2 = z < -30.0, 1.0 / jnp.minimum(z, -1.0) ** 2  # there z + r has lost its digits: asymptotic series
            mean = sd * jnp.where(far, jnp.sqrt(w2) * (1.0 - w2 * (2.0 - 10.0 * w2)), z + r)
            near = jnp.clip(1.0 - r * (z + r), 1e-12, 1.0)
            variance = sd * sd * jnp.where(far, w2 * (1.0 - w2 * (6.0 - 50.0 * w2)), near)
            new_tau = jnp.where(valid[i], jnp.maximum(1.0 / variance - precision, 0.0), 0.0)
            new_nu = jnp.where(valid[i], mean * (new_tau + precision) - shift, 0.0)
            d_tau, d_nu = new_tau - tau[i], new_nu - nu[i]
            column, own = Sigma[:, i], 1.0 + d_tau * Sigma[i, i]
            w = w + column * ((d_nu - d_tau * w[i]) / own)
            Sigma = Sigma - (d_tau / own) * column[:, None] * column[None, :]
            return Sigma, w, tau.at[i].set(new_tau), nu.at[i].set(new_nu), log_det + jnp.log(own)

        def sweep(state: Any) -> Any:
            sites, count, _ = state
            new = jax.lax.fori_loop(0, used, site, sites)
            change = jnp.max(jnp.abs(new[1] - sites[1]) / jnp.sqrt(jnp.diagonal(C)))
            return new, count + 1, change

        def going(state: Any) -> jax.Array:
            return (state[1] < self.max_sweeps) & (state[2] > self.tolerance)

        zero = jnp.zeros(n)
        start = ((C, mu, zero, zero, jnp.zeros(())), jnp.asarray(0), jnp.asarray(jnp.inf))
        (Sigma, w, tau, nu, log_det), _, change = jax.lax.while_loop(going, sweep, start)

        diagonal = jnp.diagonal(Sigma)
        precision = jnp.maximum(1.0 / diagonal - tau, 1e-300)
        shift = w / diagonal - nu
        log_site = log_ndtr(shift * precision**-0.5) + 0.5 * jnp.log1p(tau / precision)
        log_site += 0.5 * shift**2 / precision - 0.5 * (shift + nu) ** 2 / (precision + tau)
        d_log = nu - tau * w
        log_mass = jnp.sum(jnp.where(valid, log_site, 0.0)) - 0.5 * log_det + 0.5 * (mu @ d_log + nu @ w)
        good = jnp.isfinite(log_mass)
        converged = good & (change <= self.tolerance)
        return Orthant(jnp.where(good, log_mass, -jnp.inf), w, jnp.where(good, d_log, 0.0), converged)


@jax.custom_jvp
def _pass(
    value: jax.Array, d_m: jax.Array, d_S: jax.Array, d_eta: jax.Array, m: jax.Array, S: jax.Array, eta: jax.Array
) -> jax.Array:
    """The value, whose derivatives by (m, S, eta) are declared to be (d_m, d_S, d_eta)."""
    return value


@_pass.defjvp
def _pass_jvp(primals: Any, tangents: Any) -> tuple[jax.Array, jax.Array]:
    value, d_m, d_S, d_eta, *_ = primals
    *_, t_m, t_S, t_eta = tangents
    return value, d_m @ t_m + jnp.sum(d_S * t_S) + d_eta * t_eta


def _log_gain(ep: EP, m: jax.Array, S: jax.Array, eta: jax.Array, valid: jax.Array) -> tuple[jax.Array, jax.Array]:
    stop = jax.lax.stop_gradient
    found = ep.regions(stop(m), stop(S), stop(eta), valid)
    log_masses = jax.nn.log_softmax(found.log_masses)
    relative = jnp.exp(log_masses[1:] - found.log_gain)  # Z / gain, also when both underflow
    relative = jnp.where(jnp.isfinite(relative), relative, 0.0)
    d_Z = relative[:, None] * jnp.where(jnp.isfinite(found.d_log_mass), found.d_log_mass, 0.0)
    value = _pass(found.log_gain, -relative, -0.25 * (d_Z + d_Z.T), jnp.sum(relative), m, S, eta)
    return value, found.trusted
