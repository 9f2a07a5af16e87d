"""What every kernel must do."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from glasses.lookahead.myopic import ExpectedLoss
from glasses.loop.optimizer import Optimizer
from glasses.surrogate import GaussianProcess, Kernel
from glasses.surrogate.hyperparameters import Layout
from glasses.testing.contract import Contract, check_immutable


def theta_of(kernel: Kernel, seed: int = 0, d: int = 3) -> Any:
    """Some hyperparameters of the kernel, drawn around its starts."""
    layout = Layout.of(kernel.hyperparameters(d))
    low, high = layout.bounds().T
    free = layout.starts([0.0], True)[0] + 0.3 * np.random.default_rng(seed).standard_normal(layout.size)
    return layout.theta(jnp.asarray(np.clip(free, low, high)))


class KernelContract(Contract):
    """Give the kernel by a fixture ``kernel``. ``d``: the number of inputs it is tested with."""

    d = 3

    @property
    def points(self) -> jax.Array:
        """Points of the unit cube."""
        return jnp.asarray(np.random.default_rng(0).random((25, self.d)))

    @property
    def choice(self) -> jax.Array:
        """The second input has no order (the first, if it is the only one)."""
        return jnp.arange(self.d) == min(1, self.d - 1)

    def test_it_is_immutable(self, kernel: Kernel) -> None:
        check_immutable("kernel", kernel)

    @pytest.mark.parametrize("with_choice", [False, True], ids=["numbers", "choices"])
    def test_a_covariance_is_symmetric_and_positive_definite_with_the_right_diagonal(
        self, kernel: Kernel, with_choice: bool
    ) -> None:
        choice = self.choice if with_choice else None
        theta, points = theta_of(kernel, d=self.d), self.points
        K = np.asarray(kernel.covariance(theta, points, points, choice))
        np.testing.assert_allclose(K, K.T, atol=1e-14)
        np.testing.assert_allclose(np.diag(K), kernel.diagonal(theta, points, choice), rtol=1e-12)
        assert np.linalg.eigvalsh(K).min() > -1e-7
        assert 0.0 <= float(kernel.variance(theta)) <= np.diag(K).max() * (1 + 1e-12)

    def test_a_covariance_is_of_its_two_points_alone(self, kernel: Kernel) -> None:
        """Whatever other points, padding among them, stand beside them."""
        theta, points = theta_of(kernel, d=self.d), self.points
        whole = np.asarray(kernel.covariance(theta, points, points))
        part = np.asarray(
            jax.jit(kernel.covariance)(theta, points[4:9], points[:1:-1])
        )  # one compilation, not one for each step
        np.testing.assert_allclose(part, whole[4:9, :1:-1], rtol=1e-10, atol=1e-12)

    def test_derivatives_are_finite_everywhere_and_right(self, kernel: Kernel) -> None:
        """By the inputs, also where two points are the same and on the border, and by the hyperparameters."""
        layout, points = Layout.of(kernel.hyperparameters(self.d)), self.points
        free = jnp.asarray(layout.starts([0.1], True)[0])
        corner = jnp.asarray([([0.0, 1.0, 0.5] * self.d)[: self.d]])
        slope = jax.grad(lambda x: kernel.covariance(layout.theta(free), x[None], corner)[0, 0])(corner[0])
        assert np.all(np.isfinite(slope))

        def total(free: jax.Array) -> jax.Array:
            return jnp.sum(jnp.sin(points @ points.T) * kernel.covariance(layout.theta(free), points, points))

        gradient = jax.grad(total)(free)
        for i in range(layout.size):
            step = 1e-6 * jnp.eye(layout.size)[i]
            finite = float(total(free + step) - total(free - step)) / 2e-6
            assert float(gradient[i]) == pytest.approx(finite, rel=2e-4, abs=1e-6)

    def test_hyperparameters_and_the_vector_of_a_fit_are_two_forms_of_one_thing(self, kernel: Kernel) -> None:
        layout = Layout.of(kernel.hyperparameters(self.d))
        theta = theta_of(kernel, seed=1, d=self.d)
        again = layout.theta(layout.free(theta))
        for a, b in zip(jax.tree.leaves(again), jax.tree.leaves(theta), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
        assert layout.bounds().shape == (layout.size, 2)
        assert np.all(layout.starts([0.0, -2.0, 2.0], False) >= layout.bounds()[:, 0])
        assert np.isfinite(float(layout.penalty(layout.free(theta))))

    def test_it_can_be_fitted_and_decides(self, kernel: Kernel) -> None:
        """Data without noise are met, and a point of the cube is asked for."""
        model, data = GaussianProcess(kernel=kernel), np.asarray(self.points)[:6]
        box = [(0.0, 1.0)] * self.d
        optimizer = Optimizer(box, budget=12, n_initial=6, seed=0, model=model, loss=ExpectedLoss())
        optimizer.tell(data, [float(np.sum((x - 0.4) ** 2)) for x in data])
        x = optimizer.ask()
        assert np.all((x >= 0) & (x <= 1))
        mean, sd = optimizer.predict(data)
        np.testing.assert_allclose(mean, optimizer.values, atol=1e-2)
        assert np.all(sd < 0.1)
