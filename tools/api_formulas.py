r"""Sphinx extension: pages of the API set the formulas that docstrings, which terminals show too, write in letters.

A formula that stands here is set wherever a docstring has it, broken over two lines or not; one that is longer than a
line of a phone stands in two parts.
"""

import re

FORMULAS = {
    "(F + C^-1 / r)^-1 p": r"(F + C^{-1}/r)^{-1} p",
    "(F + C^-1 / r_i)^-1 p_i": r"(F + C^{-1}/r_i)^{-1} p_i",
    "(F + C^-1 / r_i)^-1": r"(F + C^{-1}/r_i)^{-1}",
    "(F_SS)^-1": r"(F_{SS})^{-1}",
    "A B^T / sqrt(m)": r"A B^\top / \sqrt m",
    "A B^T": r"A B^\top",
    "A^T A / m": r"A^\top A / m",
    "A^T A = B^T B": r"A^\top A = B^\top B",
    "A^T A_k / m": r"A^\top A_k / m",
    "A_k^T A_k / m": r"A_k^\top A_k / m",
    "B^T B / m": r"B^\top B / m",
    "B^T B_0 / m": r"B^\top B_0 / m",
    "B^T B_k / m": r"B^\top B_k / m",
    "B_0^T B_0 / m": r"B_0^\top B_0 / m",
    "B_k^T B_k / m": r"B_k^\top B_k / m",
    "C = L L^T": r"C = L L^\top",
    "C^-1 x_i / r_i": r"C^{-1} x_i / r_i",
    "C_ij = (u_i - ubar) . (v_j - vbar) / sqrt(m)": r"C_{ij} = (u_i - \bar u) \cdot (v_j - \bar v) / \sqrt m",
    "E(B_k^T B_(k+1))": r"\mathbb{E}(B_k^\top B_{k+1})",
    "E(R^u) = 1": r"\mathbb{E}(R^u) = 1",
    "E(r^p)": r"\mathbb{E}(r^p)",
    "E(u u^T)": r"\mathbb{E}(u u^\top)",
    "E(|A - A_k|^2 | R^u = r)": r"\mathbb{E}(|A - A_k|^2 \mid R^u = r)",
    "E|E(u | p)|^2 / d": r"\mathbb{E}\,|\mathbb{E}(u \mid p)|^2 / d",
    "E|u|^2 / d": r"\mathbb{E}\,|u|^2 / d",
    "1 - s t / (S^a S^b)": r"1 - s t / (S^a S^b)",
    "+ phi_u + phi_v": r"{} + \varphi_u + \varphi_v",
    "L(A, B) = |Y~ - A B^T / sqrt(m)|^2 / 2": r"L(A, B) = \tfrac12 |\tilde Y - A B^\top / \sqrt m|^2",
    "M = U V^T / sqrt(m)": r"M = U V^\top / \sqrt m",
    "M = U W^T": r"M = U W^\top",
    "M_ij = u_i . v_j / sqrt(m)": r"M_{ij} = u_i \cdot v_j / \sqrt m",
    "P = Y X / sqrt(m) - X_hat Gamma": r"P = Y X / \sqrt m - \hat X\, \Gamma",
    "P = sqrt(r) u M + N(0, Q)": r"P = \sqrt r\, u M + \mathcal{N}(0, Q)",
    "Poisson(r_u_i r_v_j exp(u_i . v_j / sqrt(m)))": r"\mathrm{Poisson}(r^u_i r^v_j\, e^{u_i \cdot v_j / \sqrt m})",
    "Q = X^T X / m": r"Q = X^\top X / m",
    "Q^a = s I": r"Q^a = s I",
    "Q^b = t I": r"Q^b = t I",
    "W = X / sqrt(m)": r"W = X / \sqrt m",
    "Y~ = R_u^(-1/2) (Z - r_u r_v^T) R_v^(-1/2)":
        r"\tilde Y = R_u^{-1/2} (Z - r^u (r^v)^\top) R_v^{-1/2}",
    "Z_ij ~ Poisson(exp(u_i^T v_j / sqrt(m) + s_i^u + s_j^v))":
        r"Z_{ij} \sim \mathrm{Poisson}(e^{u_i^\top v_j / \sqrt m + s_i^u + s_j^v})",
    "+ strength / sqrt(r_i) |a|_1": r"{} + \mathrm{strength}\, |a|_1 / \sqrt{r_i}",
    "a^T F a / 2 - p_i^T a": r"\tfrac12 a^\top F a - p_i^\top a",
    "g(u) = strength / 2 |u|^2": r"g(u) = \mathrm{strength}\, |u|^2 / 2",
    "g(u) = strength |u|_1": r"g(u) = \mathrm{strength}\, |u|_1",
    "g(u) = u^T C^-1 u / 2": r"g(u) = u^\top C^{-1} u / 2",
    "g(x_i / sqrt(r_i))": r"g(x_i / \sqrt{r_i})",
    "kappa = var_u^2 var_v^2 E(R_u^2) E(R_v^2) / beta":
        r"\kappa = \sigma_u^4 \sigma_v^4\, \mathbb{E}(R_u^2)\, \mathbb{E}(R_v^2) / \beta",
    "log lambda_ij = u_i . v_j / sqrt(m) + s_i^u + s_j^v":
        r"\log \lambda_{ij} = u_i \cdot v_j / \sqrt m + s_i^u + s_j^v",
    "log sum_j r_v_j exp(M_ij)": r"\log \sum_j r^v_j\, e^{M_{ij}}",
    "p (F + covariance^-1 / r)^-1": r"p\,(F + \mathrm{covariance}^{-1}/r)^{-1}",
    "p (F + strength / r I)^-1": r"p\,(F + \mathrm{strength}/r\, I)^{-1}",
    "p = t u + N(0, t I)": r"p = t u + \mathcal{N}(0, t I)",
    "p = x F + N(0, F)": r"p = x F + \mathcal{N}(0, F)",
    "+ (d/2) (S^a - s) (S^b - t)": r"{} + \tfrac d2 (S^a - s)(S^b - t)",
    "phi = E I_u(R^u t) + E I_v(R^v s) / beta": r"\varphi = \mathbb{E}\, I_u(R^u t) + \mathbb{E}\, I_v(R^v s) / \beta",
    "r = C0 / U^alpha": r"r = C_0 / U^\alpha",
    "r = exp(s)": r"r = e^s",
    "r_u r_v^T": r"r^u (r^v)^\top",
    "r_u_i = m / Z_tot * sum_j Z_ij": r"r^u_i = \tfrac{m}{Z_{\mathrm{tot}}} \sum_j Z_{ij}",
    "r_u_i = row_i / sum_j r_v_j exp(M_ij)": r"r^u_i = \mathrm{row}_i / \sum_j r^v_j\, e^{M_{ij}}",
    "r_u_i r_v_j exp(M_ij)": r"r^u_i r^v_j\, e^{M_{ij}}",
    "r_u_i r_v_j exp(u_i . v_j / sqrt(m))": r"r^u_i r^v_j\, e^{u_i \cdot v_j / \sqrt m}",
    "r_v_j = 1 / m * sum_i Z_ij": r"r^v_j = \tfrac1m \sum_i Z_{ij}",
    "r_v_j exp(M_ij)": r"r^v_j\, e^{M_{ij}}",
    "sqrt((sigma^2 - m - n)^2 - 4 m n) / sigma": r"\sqrt{(\sigma^2 - m - n)^2 - 4mn} / \sigma",
    "sqrt((theta^2 + m)(theta^2 + n)) / theta": r"\sqrt{(\theta^2 + m)(\theta^2 + n)} / \theta",
    "sqrt(R) u": r"\sqrt R\, u",
    "sqrt(m) + sqrt(n)": r"\sqrt m + \sqrt n",
    "sqrt(r) u": r"\sqrt r\, u",
    "sum_j r_v_j exp(M_ij)": r"\sum_j r^v_j\, e^{M_{ij}}",
    "theta <= (m n)^(1/4)": r"\theta \le (mn)^{1/4}",
    "theta > (m n)^(1/4)": r"\theta > (mn)^{1/4}",
    "u = x / sqrt(r)": r"u = x / \sqrt r",
    "u_i = x_i / sqrt(r_i)": r"u_i = x_i / \sqrt{r_i}",
    "u_i^T C^-1 u_i": r"u_i^\top C^{-1} u_i",
    "x = sqrt(r) u": r"x = \sqrt r\, u",
    "|A_hat B_hat^T - A B^T|^2 / |A B^T|^2": r"|\hat A \hat B^\top - A B^\top|^2 / |A B^\top|^2",
    "|A_k B_(k+1)^T - A B^T|^2 / |A B^T|^2": r"|A_k B_{k+1}^\top - A B^\top|^2 / |A B^\top|^2",
    "|x_i - x_hat_i|^2": r"|x_i - \hat x_i|^2",
    "|x_i . x_hat_i|": r"|x_i \cdot \hat x_i|",
}  # fmt: skip


def written(formula):
    """Return the pattern of a formula in a docstring, where a line may end at a space."""
    return r"\s+".join(map(re.escape, formula.split()))


FOUND = re.compile(rf"(?<![\w`^/])(?:{'|'.join(map(written, sorted(FORMULAS, key=len, reverse=True)))})(?![\w`^])")


def set_formulas(text):
    r"""Return a text with its formulas as roles.

    Examples
    --------
    >>> print(set_formulas("Posterior mean of x = sqrt(r)\nu given P."))
    Posterior mean of :math:`x = \sqrt r\, u` given P.
    """
    return FOUND.sub(lambda found: rf":math:`{FORMULAS[' '.join(found[0].split())]}`", text)


def process(app, what, name, obj, options, lines):
    """Set what a docstring has before its examples."""
    text, *examples = re.split(r"(?=\nExamples\n)", "\n".join(lines), maxsplit=1)
    lines[:] = (set_formulas(text) + "".join(examples)).split("\n")


def setup(app):
    """Come before numpydoc, which takes docstrings apart."""
    app.connect("autodoc-process-docstring", process, priority=300)
    return {"parallel_read_safe": True}
