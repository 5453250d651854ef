"""The points of checks that several assignments share: 100 for each kind of denoiser.

The grader keeps what a check has found: other points need no other run.
"""

# Where none of these passes, the others earn nothing: the estimate zero keeps most
# promises of a denoiser.
ESSENTIAL = ("optimality", "limits", "tweedie", "heldout")

MINIMISER = {
    # the contract of every denoiser
    "shapes": 3,
    "no_mutation": 3,
    "deterministic": 3,
    "row_independence": 4,
    "hard_inputs": 6,
    "speed": 5,
    # the estimate
    "optimality": 20,
    "frequency_scaling": 8,
    "limits": 6,
    # the Jacobian
    "jacobian": 15,
    "jacobian_symmetric": 4,
    "lipschitz": 4,
    # the penalty
    "penalty": 6,
    # in AMP
    "state_evolution": 5,
    "prediction": 8,
}

POSTERIOR_MEAN = {
    # the contract of every denoiser
    "shapes": 3,
    "no_mutation": 3,
    "deterministic": 3,
    "row_independence": 4,
    "hard_inputs": 8,
    "speed": 5,
    # the estimate
    "tweedie": 18,
    "nishimori": 6,
    "frequency_scaling": 8,
    "limits": 6,
    # the Jacobian
    "jacobian": 15,
    "jacobian_symmetric": 4,
    "lipschitz": 4,
    # in AMP
    "state_evolution": 5,
    "prediction": 8,
}
