"""The points of checks that several assignments share: 100 for each kind of denoiser.

The grader keeps what a check has found: other points need no other run.
"""

# Where none of these passes, the others earn nothing: the estimate zero keeps most
# promises of a denoiser.
ESSENTIAL = ("optimality", "limits", "tweedie", "heldout")

MINIMISER = {
    # the contract of every denoiser
    **{"shapes": 2, "no_mutation": 2, "deterministic": 3, "row_independence": 3, "hard_inputs": 4, "speed": 5},
    # the estimate
    **{"optimality": 12, "frequency_scaling": 5, "limits": 4},
    # the Jacobian
    **{"jacobian": 15},
    # the penalty
    **{"penalty": 5},
    # all of them, on problems of every kind
    **{"right_answers": 25},
    # in AMP
    **{"state_evolution": 5, "prediction": 10},
}

POSTERIOR_MEAN = {
    # the contract of every denoiser
    **{"shapes": 2, "no_mutation": 2, "deterministic": 3, "row_independence": 3, "hard_inputs": 4, "speed": 5},
    # the estimate
    **{"tweedie": 17, "frequency_scaling": 6, "limits": 4},
    # the Jacobian
    **{"jacobian": 14},
    # both, on problems of every kind
    **{"right_answers": 25},
    # in AMP
    **{"state_evolution": 5, "prediction": 10},
}
