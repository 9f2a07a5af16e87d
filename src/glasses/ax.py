"""GLASSES inside Ax 1.3: ``GlassesNode``, a generation node that knows how many trials are left. Needs ``glasses[ax]``.

Ax fits its own model with its own transforms and gives pending trials; the node has it choose the next trial by
``GlassesAcquisition``. The trials left are the budget less those of the experiment that were not abandoned or left stale, so
what is added by hand or comes from another node counts too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

try:
    from ax.adapter.registry import Generators
    from ax.core.experiment import Experiment
    from ax.core.generator_run import GeneratorRun
    from ax.core.parameter import ParameterType, RangeParameter
    from ax.core.trial_status import TrialStatus
    from ax.generation_strategy.generation_node import GenerationNode
    from ax.generation_strategy.generation_strategy import GenerationStrategy
    from ax.generation_strategy.generator_spec import GeneratorSpec
    from ax.generation_strategy.transition_criterion import MinTrials, TransitionCriterion
    from ax.utils.common.constants import Keys
except ImportError as error:
    raise ImportError("glasses.ax needs Ax: pip install 'glasses[ax]'.", name=error.name) from error

from glasses.botorch import GlassesAcquisition, start_generator
from glasses.lookahead.loss import Loss

_NOT_COUNTED = (TrialStatus.ABANDONED, TrialStatus.STALE)
_SEARCH = {"num_restarts": 4, "raw_samples": 256, "retry_on_optimization_warning": False}


class GlassesNode(GenerationNode):  # type: ignore[misc]
    """Generates each trial for the whole rest of the budget.

    ``budget``: all trials of the experiment, those of other nodes included; beyond it every trial is planned as the last one.
    ``loss``, ``candidates``, ``seed``: as in ``GlassesAcquisition``. ``optimizer``: options of BoTorch's ``optimize_acqf``, on
    top of 4 restarts: from the best candidates where all parameters are floats, else from the best of 256 points.
    ``generator``: further arguments of Ax's modular BoTorch generator, such as ``surrogate_spec``. One objective, no outcome
    constraints.
    """

    def __init__(
        self,
        budget: int,
        *,
        name: str = "GLASSES",
        loss: Loss | None = None,
        candidates: int = 256,
        seed: int = 0,
        optimizer: Mapping[str, Any] | None = None,
        generator: Mapping[str, Any] | None = None,
        transition_criteria: Sequence[TransitionCriterion] | None = None,
    ) -> None:
        self.budget = _whole("budget", budget)
        self._settings = {"loss": loss, "candidates": candidates, "seed": seed}
        self._optimizer = dict(optimizer or {})
        spec = GeneratorSpec(
            generator_enum=Generators.BOTORCH_MODULAR,
            generator_kwargs={"botorch_acqf_class": GlassesAcquisition, **(generator or {})},
        )
        super().__init__(name=name, generator_specs=[spec], transition_criteria=transition_criteria, should_deduplicate=True)

    def remaining(self, experiment: Experiment) -> int:
        """Trials left, at least 1."""
        begun = sum(len(trial.arms) for trial in experiment.trials.values() if trial.status not in _NOT_COUNTED)
        return max(1, self.budget - begun)

    def _gen(self, experiment: Experiment, **given: Any) -> GeneratorRun:
        """With what is left by now."""
        acquisition = {"remaining": self.remaining(experiment), **self._settings}
        begin = {"ic_generator": start_generator} if _is_continuous(experiment) else {}  # mixed searches do not take one
        options = {Keys.ACQF_KWARGS: acquisition, Keys.OPTIMIZER_KWARGS: {**_SEARCH, **begin, **self._optimizer}}
        self.generator_specs[0].generator_gen_kwargs["model_gen_options"] = options
        return super()._gen(experiment=experiment, **given)


def generation_strategy(budget: int, *, n_initial: int = 5, seed: int | None = None, **settings: Any) -> GenerationStrategy:
    """Sobol points for the first ``n_initial`` trials, ``GlassesNode(budget, **settings)`` for the rest."""
    budget, n_initial = _whole("budget", budget), _whole("n_initial", n_initial)
    if n_initial > budget:
        raise ValueError(f"n_initial must be at most the budget of {budget}, got {n_initial}.")
    node = GlassesNode(budget, seed=0 if seed is None else seed, **settings)
    left_out = [TrialStatus.FAILED, *_NOT_COUNTED]
    criteria = [
        MinTrials(threshold=n_initial, transition_to=node.name, use_all_trials_in_exp=True, not_in_statuses=left_out),
        MinTrials(
            threshold=1,
            transition_to=node.name,
            use_all_trials_in_exp=True,
            only_in_statuses=[TrialStatus.COMPLETED],
            count_only_trials_with_data=True,
        ),
    ]
    sobol = GeneratorSpec(generator_enum=Generators.SOBOL, generator_kwargs={"seed": seed})
    first = GenerationNode(name="Sobol", generator_specs=[sobol], transition_criteria=criteria, should_deduplicate=True)
    return GenerationStrategy(name="Sobol+GLASSES", nodes=[first, node])


def _is_continuous(experiment: Experiment) -> bool:
    every = experiment.search_space.parameters.values()
    return all(isinstance(each, RangeParameter) and each.parameter_type == ParameterType.FLOAT for each in every)


def _whole(name: str, given: Any) -> int:
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise ValueError(f"{name} must be a whole number of trials, at least 1, got {given!r}.")
    return given
