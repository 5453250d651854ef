"""The points of checks that several assignments share: 100 for each kind of denoiser.

A mistake in one line costs at most 20: of what is named by one check and seen again by
another, neither costs much. Who has half of the formula of the estimate has at most 60.

The grader keeps what a check has found: other points need no other run.
"""

# Where none of these passes, the others earn nothing: the estimate zero keeps most
# promises of a denoiser.
ESSENTIAL = ("optimality", "limits", "tweedie", "heldout")

MINIMISER = {
    # the contract of every denoiser
    **{"shapes": 4, "no_mutation": 5, "deterministic": 3, "row_independence": 5, "hard_inputs": 4, "speed": 8},
    # the estimate
    **{"optimality": 27, "frequency_scaling": 3, "limits": 4},
    # the Jacobian and the penalty
    **{"jacobian": 8, "penalty": 5},
    # each of them, on problems of every kind
    **{"right_answers": 10, "right_jacobian": 4, "right_penalty": 2},
    # in AMP
    **{"state_evolution": 2, "prediction": 6},
}

# it has no penalty
_OTHERS = {name: points for name, points in MINIMISER.items() if name not in ("optimality", "penalty", "right_penalty")}
POSTERIOR_MEAN = _OTHERS | {"hard_inputs": 6, "tweedie": 30, "limits": 6}
