"""Whose work a denoiser is: which classes of the package a class is made of."""

import sys
from types import CodeType

from amptutorial.denoisers import Denoiser


def ready_made(cls):
    """Return the names of the package's denoisers in a class's ancestry and file.

    Of those that its file has imported, the ones that its code names: a star import
    brings them all.

    Examples
    --------
    >>> from amptutorial.denoisers import Ridge
    >>> ready_made(type("RidgeByHand", (Ridge,), {}))
    ['LinearDenoiser', 'Ridge']
    """
    file = sys.modules.get(cls.__module__)
    bound = {} if file is None else vars(file)
    own = [cls, *(x for x in bound.values() if getattr(x, "__module__", None) == cls.__module__)]
    parts = [*own, *(part for x in own if isinstance(x, type) for part in vars(x).values())]
    named = set().union(*map(_names, parts)) & bound.keys()
    classes = {x for x in (*cls.__mro__, *(bound[name] for name in named)) if isinstance(x, type)}
    return sorted(
        x.__name__ for x in classes - {Denoiser} if issubclass(x, Denoiser) and x.__module__ == Denoiser.__module__
    )


def _names(part):
    """Return the names that code, a function, a method or a property loads, inner functions included."""
    if isinstance(part, CodeType):
        inner = (const for const in part.co_consts if isinstance(const, CodeType))
        return set(part.co_names).union(*map(_names, inner))
    functions = (getattr(part, name, None) for name in ("__code__", "__func__", "fget"))
    return set().union(*(_names(found) for found in functions if found is not None))
