"""Rows on which a denoiser is tried: usual, hard, and a ladder of random ones.

On the ladder dimension, rows, rates and F are drawn together. It begins with a single
row of few digits, so that the first failure is the simplest one.
"""

from dataclasses import dataclass, replace

import numpy as np

ILL = "an F with the eigenvalue 1e-4"
# of F whose axes are turned, at most: coordinate descent, a right solution, takes as
# many steps
CONDITION = 101
UNITS = 8  # so many decades of r, up and down
# numbers of rows
FEW, MANY, MOST = 40, np.geomspace(60, 1500, 4), 25_000
TAKES_MEMORY = 4_000  # so many rows of a posterior mean, by thousands of its points
# so many questions a student is asked, and so many a class, which are asked further
# ones with the most rows
SHORT, LONG, LARGEST = 48, 120, 3
# of what is asked next, the same but for a part: what a weak key of a cache confuses
TWINS = "parameters axes corner P F r parameters nearly order".split()


@dataclass(frozen=True)
class Problem:
    """Rows on which a denoiser is tried.

    F is symmetric and positive definite.
    """

    P: np.ndarray  # (N, d)
    r: np.ndarray  # (N,)
    F: np.ndarray  # (d, d)

    def copies(self):
        """Return fresh copies `(P, r, F)`, for a denoiser that may write into them."""
        return self.P.copy(), self.r.copy(), self.F.copy()

    def rows(self, index):
        """Return the problem with the rows `index` alone."""
        return Problem(self.P[index], self.r[index], self.F)

    def in_units(self, unit):
        """Return the same problem with other units of x: r is `unit` times as large."""
        return Problem(self.P / np.sqrt(unit), self.r * unit, self.F / unit)

    def at_one(self):
        """Return what a single row asks about u = x / sqrt(r), at r = 1."""
        return Problem(np.sqrt(self.r) * self.P, np.ones(1), self.r[0] * self.F)

    def rounded(self, digits):
        """Return the problem in numbers of so many digits, if F stays what it is."""
        few = Problem(*(rounded(array, digits) for array in self.copies()))
        w, worst = np.linalg.eigvalsh(few.F), np.linalg.cond(self.F)
        return few if w[0] * max(worst, CONDITION) >= w[-1] else self

    def hard(self):
        """Return extreme problems made from this one, by what is extreme in each."""
        (P, r, F), d = self.copies(), len(self.F)
        V, tiny, huge = np.linalg.eigh(F)[1], np.full(1, 1e-10), np.full(1, 1e10)
        # not worse: coordinate descent, a right solution, needs as many steps as the
        # condition number
        ill = turn_axes(np.diag(np.geomspace(1e-4, 1, d)), V) if d > 1 else 1e-4 * F
        long = np.vstack([1e6 * P[:1], P[1:]])
        return {
            ILL: Problem(P, r, ill),
            "a tiny r = 1e-10": Problem(P[:1], tiny, F),
            "a huge r = 1e10, and p 1e5 times as large": Problem(1e5 * P[:1], huge, F),
            "P = 0": Problem(0 * P, r, F),
            "a row of P that is 1e6 times as large as others": Problem(long, r, F),
        }

    def indefinite(self, convexity):
        """Return the problem with an F whose least eigenvalue is half of -convexity."""
        w, V = np.linalg.eigh(self.F)
        return replace(self, F=turn_axes(np.diag([-convexity / 2, *w[1:]]), V))


def rounded(array, digits):
    """Return an array whose entries have so many digits."""
    return np.reshape([float(f"{x:.{digits}g}") for x in array.ravel()], array.shape)


def turn_axes(F, basis):
    """Return `F` with its axes turned by an orthogonal matrix; it stays symmetric."""
    F = basis @ F @ basis.T
    return (F + F.T) / 2


def draw_problem(n_rows, d, *, rng, rows=None):
    """Return a `Problem` with rows of the size that AMP would meet.

    F has the condition number 30, and the rates r spread over two decades.

    Parameters
    ----------
    n_rows, d : int
    rng : numpy.random.Generator
    rows : RowLaw, optional
        Of u; standard normal if left out.

    Examples
    --------
    >>> draw_problem(5, 2, rng=np.random.default_rng(0)).P.shape
    (5, 2)
    """
    F = turn_axes(np.diag(np.geomspace(0.3, 9.0, d)), _basis(rng, d))
    r = np.exp(rng.uniform(-2.3, 2.3, n_rows))
    size = (n_rows, d)
    U = rng.standard_normal(size) if rows is None else rows.draw(size, rng=rng)
    return Problem(observe(U, r, F, rng=rng)[1], r, F)


def observe(U, r, F, *, rng):
    """Return the rows x = sqrt(r) u, and a p = x F + N(0, F) for each.

    Parameters
    ----------
    U : array (N, d)
    r : array (N,)
    F : array (d, d)
    rng : numpy.random.Generator

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> U, r = np.ones((10_000, 1)), np.full(10_000, 4.0)
    >>> X, P = observe(U, r, 9 * np.eye(1), rng=rng)
    >>> X.mean(), P.mean().round(), P.var().round()
    (np.float64(2.0), np.float64(18.0), np.float64(9.0))
    """
    X = np.sqrt(r)[:, None] * U
    return X, X @ F + rng.standard_normal(X.shape) @ np.linalg.cholesky(F).T


def ladder(rng, family, n):
    """Return `n` questions, each one of the `family` of trials and a `Problem`.

    Every third question is a twin of the one before. Of the others a quarter have a
    single row and few digits, and a quarter have many rows. A class is asked a few
    more, which have the most rows.
    """
    # all of the family once, and again, each time in another order
    members = iter(np.concatenate([rng.permutation(len(family)) for _ in range(n)]))
    questions, which, problem = [], 0, family[0].problem
    for k in range(n):
        if k % 3 == 2:
            kind = TWINS[k // 3 % len(TWINS)]
            which, problem = _twin(rng, kind, family, which, problem)
        else:
            which = next(members)
            problem = _rung(rng, family[which], k)
            unit = draw_unit(rng) if k % 4 else 1.0
        questions.append((family[which], problem.in_units(unit)))
    if n > SHORT:
        three = rng.permutation([one for one in family if one.d == 3] or family[:1])
        questions += [(one, _many(rng, one, MOST)) for one in three[:LARGEST]]
    return questions


def _rung(rng, trial, k):
    """Return the k-th problem of a ladder."""
    if k % 4 == 0:
        return draw(rng, trial, 1).rounded(2)
    if k % 6 == 3:
        return _many(rng, trial, MANY[k // 6 % len(MANY)])
    return draw(rng, trial, int(FEW ** rng.uniform()))


def draw_unit(rng):
    """Return a unit of x in which an absolute threshold shows, or one."""
    return 10 ** (rng.integers(2) * rng.uniform(-UNITS, UNITS))


def _twin(rng, kind, family, which, problem):
    """Return a question that a weak key of a cache takes for the last one."""
    d, (P, r, F) = family[which].d, problem.copies()
    if kind == "parameters":
        # neighbours may share all parameters but one
        near = [k for k in (which - 1, which + 1) if 0 <= k < len(family)]
        return rng.choice([k for k in near if family[k].d == d] or [which]), problem
    if kind == "order":
        return which, problem.rows(rng.permutation(len(r)))
    if kind == "nearly":
        # F by a number: with noise it might not be positive definite
        size = 10 ** rng.uniform(-6, -2)
        parts = (x * (1 + size * rng.uniform(-1, 1, x.shape)) for x in (P, r))
        return which, Problem(*parts, F * (1 + size * rng.integers(2)))
    if kind in ("axes", "corner") and np.linalg.cond(F) <= CONDITION:
        same, basis = int(kind == "corner" and d > 1), np.eye(d)
        basis[same:, same:] = _basis(rng, d - same, _nearness(rng))
        return which, replace(problem, F=turn_axes(F, basis))
    part = kind if kind in ("P", "r") else "F"
    new = getattr(draw(rng, family[which], len(r)), part)
    return which, replace(problem, **{part: new})


def draw(rng, trial, N):
    """Return a problem with N rows."""
    belief, F = trial.belief, _draw_F(rng, trial.d)
    r = _draw_rates(rng, N, *belief.decades)
    P = observe(belief.rows.draw((N, trial.d), rng=rng), r, F, rng=rng)[1]
    # densities of p, a right solution, lose digits where p is far from any x F
    most = 3 if trial.states("value") else 1
    P *= rng.choice([1, 1, 10 ** rng.uniform(-1, most)])
    P[(slice(0), rng.random(P.shape) < 0.4, r.argmax())[rng.integers(3)]] = 0
    P[-1] *= 10 ** (most * rng.integers(2))
    if rng.integers(4) == 0:
        P[0], r[0] = P[-1], r[-1]
    return Problem(P, r, F)


def _draw_rates(rng, N, low, high):
    """Return N rates: equal, few, nearly equal, or between any two of these decades."""
    width = (high - low) * rng.choice([0, 1, 10 ** rng.uniform(-3, 0)])
    start = low + (high - low - width) * rng.beta(2, 2)
    r = 10 ** rng.uniform(start, start + width, N)
    few = r[: int(10 ** rng.uniform(0, 2))]
    return rng.choice(few, N) if rng.integers(3) == 0 else r


def _draw_F(rng, d):
    """Return a matrix F: c I, diagonal, or with its axes turned."""
    size, kind = 10 ** rng.uniform(-2, 2), rng.integers(5)
    turned = 1 + (CONDITION - 1) * 10 ** rng.uniform(-5, 0)
    condition = (1, 10 ** rng.uniform(0, 3), turned)[min(kind, 2)]
    powers = np.r_[0, 1, rng.random(d)][:d]
    powers = powers.round() if rng.integers(3) == 0 else powers  # some are equal
    basis = np.eye(d) if kind < 2 else _basis(rng, d, _nearness(rng))
    return turn_axes(np.diag(size * condition ** -rng.permutation(powers)), basis)


def _nearness(rng):
    """Return how near to the identity a basis is: half of the time not at all."""
    return rng.choice([0, 10 ** rng.uniform(0, 3)])


def _basis(rng, d, nearness=0):
    """Return an orthogonal matrix in any directions, or near to the identity."""
    return np.linalg.qr(nearness * np.eye(d) + rng.standard_normal((d, d)))[0]


def _many(rng, trial, most):
    """Return a problem with many rows, easy ones first, or last.

    With the most rows, and at times, F is badly conditioned: what stops when the first
    rows are done, or when a budget is used up, shows.
    """
    most = min(most, TAKES_MEMORY) if trial.states("log_partition") else most
    N = int(most * rng.uniform(0.8, 1))
    problem = draw(rng, trial, N)
    if most >= TAKES_MEMORY or rng.integers(3) == 0:
        w = np.geomspace(1, 1 / CONDITION, trial.d)
        problem = replace(problem, F=turn_axes(np.diag(w), _basis(rng, trial.d)))
    order = np.argsort(np.linalg.norm(problem.P, axis=1) / np.sqrt(problem.r))
    return problem.rows(order[:: rng.choice([1, -1])])
