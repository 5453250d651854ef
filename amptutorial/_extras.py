"""What only some uses need, and how to install it: the extras of the distribution."""

from contextlib import contextmanager

# Neither distribution is on an index, where its name could be somebody else's.
PLACE = "git+https://github.com/amptutorial/amptutorial"
PLACES = {"amptutorial": PLACE, "amptutorial-course": f"{PLACE}#subdirectory=course"}


def pip_install(name, distribution="amptutorial"):
    """Return the command that installs an extra.

    Examples
    --------
    >>> print(pip_install("frames"))
    pip install "amptutorial[frames] @ git+https://github.com/amptutorial/amptutorial"
    """
    return f'pip install "{distribution}[{name}] @ {PLACES[distribution]}"'


@contextmanager
def extra(name, distribution="amptutorial"):
    """Where an import in the block fails, name the extra that brings what is missing.

    Parameters
    ----------
    name : str
        Of the extra.
    distribution : str

    Raises
    ------
    ModuleNotFoundError
        If what the block imports is not installed.

    Examples
    --------
    >>> with extra("frames"):
    ...     import pandas
    """
    try:
        yield
    except ModuleNotFoundError as error:
        how = f"It comes with an extra: {pip_install(name, distribution)}"
        message = f"{error.name} is not installed. {how}"
        raise ModuleNotFoundError(message, name=error.name) from error
