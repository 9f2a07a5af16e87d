from itertools import combinations

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from problems import make_candidates, query_of

from glasses import tiny
from glasses.lookahead import DeterminantalPoints
from glasses.lookahead.determinantal import log_elementary, sample_k
from glasses.lookahead.oracles import before_outcome

M = 7


def kernel_matrix(seed=0):
    A = np.random.default_rng(seed).standard_normal((M, 4))
    return A @ A.T + 0.1 * np.eye(M)


@pytest.mark.parametrize("k", [1, 3, 6])
def test_elementary_symmetric_polynomials(k):
    """[eq:esp]: sums of products by brute force."""
    values = np.linalg.eigvalsh(kernel_matrix())
    table = np.asarray(log_elementary(jnp.asarray(np.log(values)), k))
    exact = sum(np.prod(chosen) for chosen in combinations(values, k))
    assert np.exp(table[-1, k]) == pytest.approx(exact, rel=1e-9)


@pytest.mark.parametrize("k", [1, 2, 4])
def test_samples_follow_the_determinants(k):
    """[eq:dpp]: every set of k places as often as det(L_A) / e_k says, all C(7, k) sets, within 4.5 standard errors."""
    L = kernel_matrix()
    sets = list(combinations(range(M), k))
    weight = np.array([np.linalg.det(L[np.ix_(A, A)]) for A in sets])
    probability = weight / weight.sum()
    draws = 6000
    keys = jax.random.split(jax.random.key(3), draws)
    found = np.sort(np.asarray(jax.jit(jax.vmap(lambda key: sample_k(key, jnp.asarray(L), jnp.asarray(k), 4)))(keys))[:, :k])
    index = {A: i for i, A in enumerate(sets)}
    count = np.bincount([index[tuple(row)] for row in found.tolist()], minlength=len(sets))
    error = np.sqrt(probability * (1 - probability) / draws + 1e-7)
    assert np.all(np.abs(count / draws - probability) < 4.5 * error)


@pytest.mark.slow
def test_conditioning_on_the_star_is_conditioning_the_model():
    """[eq:given]: sets with x* in them, as the process over x* and the places gives them, are those of the oracle."""
    places = np.random.default_rng(2).random((6, 2))
    kernel, candidates, model = make_candidates(places, noise=1e-2)
    candidates = candidates._replace(eta=jnp.asarray(1.0))  # a high bar: EI differs little and determinants decide
    x = np.array([0.3, 0.4])
    query = query_of(kernel, candidates, jnp.asarray(x))
    mu, cov = tiny.posterior(model, np.vstack([x, places]))
    ei = tiny.expected_improvement(mu, np.sqrt(np.diag(cov) + 1e-10), float(candidates.eta))
    q = np.sqrt(ei)
    L = q[:, None] * (cov + 1e-2 * np.eye(7)) * q[None, :]
    sets = list(combinations(range(1, 7), 2))
    weight = np.array([np.linalg.det(L[np.ix_((0, *A), (0, *A))]) for A in sets])
    probability = weight / weight.sum()
    draws, oracle = 6000, DeterminantalPoints(sample=True)
    steps = jax.jit(jax.vmap(lambda s: oracle.predict(candidates, before_outcome(candidates, query), jnp.asarray(3), 3, s)))(
        jnp.arange(draws)
    )
    index = {tuple(np.array(A) - 1): i for i, A in enumerate(sets)}
    count = np.bincount([index[tuple(sorted(row))] for row in np.asarray(steps).tolist()], minlength=len(sets))
    error = np.sqrt(probability * (1 - probability) / draws + 1e-7)
    assert np.all(np.abs(count / draws - probability) < 4.5 * error)
    assert probability.max() < 0.9


def test_the_greedy_mode_is_the_brute_force_greedy():
    """[eq:greedy]: each step maximises the determinant together with x* and the steps before it."""
    places = np.random.default_rng(4).random((30, 2))
    kernel, candidates, model = make_candidates(places, noise=1e-3)
    x = np.array([0.6, 0.2])
    query = query_of(kernel, candidates, jnp.asarray(x))
    steps = np.asarray(
        jax.jit(lambda: DeterminantalPoints().predict(candidates, before_outcome(candidates, query), jnp.asarray(6), 8))()
    )[:5]
    mu, cov = tiny.posterior(model, np.vstack([x, places]))
    log_ei = np.log(tiny.expected_improvement(mu, np.sqrt(np.diag(cov) + 1e-10), float(candidates.eta)))
    S, chosen = cov + 1e-3 * np.eye(31), [0]
    for _ in range(5):
        rest = [i for i in range(1, 31) if i not in chosen]
        score = [log_ei[i] + np.linalg.slogdet(S[np.ix_([*chosen, i], [*chosen, i])])[1] for i in rest]
        chosen.append(rest[int(np.argmax(score))])
    assert steps.tolist() == [i - 1 for i in chosen[1:]]


@pytest.mark.parametrize("seed", [-1, 1.5, True])
def test_wrong_seeds_are_refused(seed):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        DeterminantalPoints(seed=seed)
