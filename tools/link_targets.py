"""Sphinx extension: a link of Markdown, `[text](page.ipynb#target)`, may name any target of the page.

MyST knows the targets of other pages by roles; a link works in plain Jupyter too, and the briefs have only links.
"""


def know_targets(app, env):
    """Add what has a label, and what is numbered, to the fragments that MyST accepts in a link to a page."""
    targets = list(env.domaindata["std"]["anonlabels"].values())
    targets += [(page, f"equation-{label}") for label, (page, _) in env.domaindata["math"]["objects"].items()]
    targets += [(each["docname"], label) for label, each in getattr(env, "proof_list", {}).items()]
    targets += [(each["docname"], label) for label, each in getattr(env, "sphinx_exercise_registry", {}).items()]
    for page, name in targets:
        env.metadata[page].setdefault("myst_slugs", {}).setdefault(name, (1, name, name))


def setup(app):
    """Do so when all pages are read, before links are resolved."""
    app.connect("env-updated", know_targets)
    return {"parallel_read_safe": True}
