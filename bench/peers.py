"""One decision of each peer, from the same data: fit the model, choose the next point."""

import warnings

import numpy as np


def botorch_model(X, y, exact):
    import torch
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import SingleTaskGP
    from gpytorch.mlls import ExactMarginalLogLikelihood

    torch.set_num_threads(1)
    X, y = torch.as_tensor(X), torch.as_tensor(-y)[:, None]
    model = SingleTaskGP(X, y, train_Yvar=torch.full_like(y, 1e-6 * float(y.var()))) if exact else SingleTaskGP(X, y)
    fit_gpytorch_mll(ExactMarginalLogLikelihood(model.likelihood, model))
    return model, torch.stack([torch.zeros(X.shape[1]), torch.ones(X.shape[1])]).double(), float(y.max())


def botorch_logei(X, y, seed, exact=False):
    """LogEI with the restarts and raw samples of BoTorch's tutorials."""
    import torch
    from botorch.acquisition import LogExpectedImprovement
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    model, bounds, best = botorch_model(X, y, exact)
    return optimize_acqf(LogExpectedImprovement(model, best), bounds, q=1, num_restarts=10, raw_samples=512)[0]


def botorch_tree(X, y, seed):
    """One-shot tree over 4 steps with 5, 3 and 1 fantasies (Jiang et al. 2020); few restarts, in the peer's favour."""
    import torch
    from botorch.acquisition.multi_step_lookahead import qMultiStepLookahead
    from botorch.optim import optimize_acqf

    torch.manual_seed(seed)
    model, bounds, _ = botorch_model(X, y, True)
    tree = qMultiStepLookahead(model, batch_sizes=[1, 1, 1], num_fantasies=[5, 3, 1])
    q = tree.get_augmented_q_batch_size(1)
    return optimize_acqf(tree, bounds, q=q, num_restarts=4, raw_samples=64)[0]


class OptunaGP:
    """Optuna's GPSampler; the study is filled before the clock starts."""

    def __init__(self, X, y, seed):
        import optuna

        optuna.logging.set_verbosity(optuna.logging.ERROR)
        warnings.simplefilter("ignore")
        sampler = optuna.samplers.GPSampler(seed=seed, n_startup_trials=1, deterministic_objective=True)
        self.study = optuna.create_study(sampler=sampler)
        box = {f"x{i}": optuna.distributions.FloatDistribution(0, 1) for i in range(X.shape[1])}
        for x, value in zip(X, y, strict=True):
            params = {f"x{i}": float(v) for i, v in enumerate(x)}
            self.study.add_trial(optuna.trial.create_trial(params=params, distributions=box, value=float(value)))
        self.box = box

    def __call__(self):
        trial = self.study.ask(self.box)
        return np.array([trial.params[name] for name in self.box])
