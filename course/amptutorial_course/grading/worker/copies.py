"""A denoiser that nobody has asked yet."""

import copy


def copied(denoiser):
    """Return a copy of a denoiser, or itself if it holds what has none, such as a module."""
    try:
        return copy.deepcopy(denoiser)
    # whatever a student keeps on it
    except Exception:  # noqa: BLE001
        return denoiser
