"""The configuration of a small book, which has what the true one has."""

project, author, copyright, language = "Small", "Nobody", "2026", "en"
extensions = ["myst_nb", "sphinx_design", "sphinx_exercise", "sphinx_proof", "quiz", "paper", "link_targets"]
extensions += ["appendices", "sphinx_book_theme"]
nb_execution_mode = "off"
myst_enable_extensions = ["colon_fence", "dollarmath"]
latex_engine = "xelatex"
latex_documents = [("index", "book.tex", "Small", "Nobody", "manual")]
latex_elements = {}
html_theme_options = {"extra_footer": "Free."}
numfig = True
