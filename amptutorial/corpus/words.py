"""The words of a text, the words of many texts as numbers, and counting them."""

import functools
import html
import numbers
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from itertools import chain, compress

import numpy as np
import scipy.sparse as sp

from .._extras import extra
from .._progress import progress

# part of the key of stored counts: raise it with any change to what is counted
PIPELINE = 3

# "&amp;lt;" is "&lt;" once more escaped. html.unescape fails at a number of more than
# 4,300 digits; no character has more than seven.
_ESCAPED = re.compile(r"&(?:amp;)*(?:#[0-9]{8,})?")
# A comment; a script, which ends with the text if nothing else ends it; a tag. "<3"
# and "a < b" are no tags. A tag stops at a "<" outside of quotes, so that no text is
# scanned again and again, as `html.parser` does in some versions of Python.
_TO_END = r"""(?:(?:[^<>"'=]|=\s*+(?:"[^"]*"|'[^']*')?)*+|[^<>]*)>"""
_MARKUP = re.compile(
    r"<!--(?:-?>|.*?(?:--!?>|\Z))"
    rf"|<(?P<raw>script|style)(?=[\s/>]){_TO_END}.*?(?:</(?P=raw)(?=[\s/>])|\Z)"
    rf"|<(?P<end>/?)(?P<name>[a-z][^\s/<>]*+){_TO_END}|<[/!?][^<>]*>",
    re.DOTALL | re.IGNORECASE,
)
# the first tag of an element that browsers do not show
_HIDES = re.compile(
    r"<(?!/|(?:area|base|br|col|embed|hr|img|input|link|meta|source|track|wbr)[\s/>])"
    r"(?:(?:title|template|noscript|iframe|noembed|noframes|audio|video|canvas|datalist"
    r"|rp|desc|annotation|progress|meter)[\s/>]|dialog(?=[\s>])(?!.*\sopen\b)"
    r"""|(?:[^"']|"[^"]*"|'[^']*')*?\shidden[\s=/>]"""
    r"|.*?(?<![\w-])(?:display\s*:\s*none|visibility\s*:\s*hidden)(?![\w-]))",
    re.DOTALL | re.IGNORECASE,
)
# what is left of markup where it was escaped, as in "&lt;br&gt;"
_TAG = re.compile(r"<[a-zA-Z/!?][^<>]*>")
APOSTROPHES = "'\u2018\u2019\u201b\u2032`\u00b4\u05f3"
# Letters between which a sign belongs to the word, as UAX #29 has it: apostrophes in
# Cyrillic and Hebrew, gershayim in Hebrew, the middle dot in Catalan. An apostrophe
# after a Latin letter cuts off an article or an ending.
_HEBREW, _LATIN = "\u0591-\u05f2", "a-z\u00df-\u036f"
_APOSTROPHED = f"{_HEBREW}\u0400-\u052f"
_LOOSE = re.compile(
    rf"'(?!(?<=n')t\b|(?<=[{_APOSTROPHED}]')[{_APOSTROPHED}])"
    rf"|\u05f4(?!(?<=[{_HEBREW}]\u05f4)[{_HEBREW}])"
    rf"|\u00b7(?!(?<=[{_LATIN}]\u00b7)[{_LATIN}])"
)
_DOTS = "\u00b7\u0387\u2027"
_GERSHAYIM = re.compile(rf"[\"\u201c-\u201f\u2033](?<=[{_HEBREW}].)(?=[{_HEBREW}])")
# a letter in some languages, and an apostrophe in others
_MODIFIER = re.compile(
    rf"\u02bc(?<=[{_APOSTROPHED}].)(?=[{_APOSTROPHED}])|\u02bc(?<=n.)(?=t\b)"
)
# signs that stretch a word, as in Arabic, or say how an Armenian one sounds
_UNWRITTEN = "\u0640\u07fa\u055b\u055c\u055e"
# Unicode orders up to thirty marks on a letter; time would be quadratic in more
_MARKS = re.compile(r"([^\w\s']{30})[^\w\s']+")
# "wo" of "won't"
_NEGATED = """ai am are ca could dare did do does had has have is may might must need
ought sha should use used was were wo would""".split()
# Where another sign cuts a contraction, "mustn" is left, which is no word; "don",
# "haven" and "won" are words. "ll" and "ve" are left of "we'll" and "we've".
CONTRACTIONS = frozenset(
    [f"{verb}n't" for verb in ("", *_NEGATED)]
    + [f"{verb}n" for verb in _NEGATED if verb not in ("do", "have", "wo")]
    + ["ll", "ve"]
)
# numerical terms that would turn into axe, smoothe, spin
_TERMS = {"axes", "smoothing", "span"}


class _Letters(dict):
    """What `str.translate` puts in place of a character."""

    def __missing__(self, code):
        return self.setdefault(code, _letter(chr(code)))


# much faster than a regular expression, and once for each character that occurs
_LETTERS = _Letters()


def _letter(character):
    """Return what stands for a character within a word, or else a space."""
    kind = unicodedata.category(character)
    tag, *codes = unicodedata.decomposition(character).split() or [""]
    selects = "VARIATION SELECTOR" in unicodedata.name(character, "")
    # a zero-width space is of the kind of joiners, but separates words
    if selects or character in _UNWRITTEN or kind == "Cf" and character != "\u200b":
        return ""
    if kind in ("Mn", "Mc") or character == "\u05f4":
        return character
    if kind[0] == "L" or kind == "Nl" or tag == "<wide>":
        # The ligature "\ufb01" as "fi", and each form of a letter as the letter. NFKC
        # of all would replace letters that readers of Thai and Korean type.
        plain = unicodedata.normalize("NFKC", character)
        typed = "\u0530" <= character < "\ufb00" and not plain.isascii()
        if tag.startswith("<") and not typed:
            return "".join(_letter(chr(int(code, 16))) for code in codes).lower()
        return character
    return "'" if character in APOSTROPHES else "\u00b7" if character in _DOTS else " "


def _shown(text):
    """Yield the parts of a text in HTML that a browser shows.

    A hidden element without an end hides nothing: the text may speak of a <title>.
    """
    start = depth = 0
    for tag in _MARKUP.finditer(text):
        name = (tag["name"] or "").lower()
        if not depth:
            yield text[start : tag.start()]
            start = tag.end()
            if name and _HIDES.match(tag.group()):
                depth, hidden = 1, name
        elif name == hidden:
            depth += -1 if tag["end"] or name == "p" else 1  # which ends the one before
            start = start if depth else tag.end()
    yield _MARKUP.sub(" ", text[start:])


def _clean(text):
    """Return `text` in lower case, with a space in place of tags, digits and signs.

    What browsers do not show is left out. Entities are characters, marks belong to the
    letters before them (NFC), and what cannot be seen, such as a soft hyphen, vanishes.
    "mustn't" and its like keep their apostrophe, and so do Cyrillic and Hebrew words.
    """
    if "<" in text:
        text = "< ".join(_shown(text))  # which ends what an escaped "<" begins
    if "&" in text:
        text = _TAG.sub(" ", html.unescape(_ESCAPED.sub("&", text)))
    text = text.lower()
    if not text.isascii():
        text = text.replace("i\u0307", "i")  # of the Turkish capital
        text = _MODIFIER.sub("'", _GERSHAYIM.sub("\u05f4", text))
    text = text.translate(_LETTERS)
    if text.isascii():
        return _LOOSE.sub(" ", text) if "'" in text else text
    return unicodedata.normalize("NFC", _MARKS.sub(r"\1", _LOOSE.sub(" ", text)))


def words(text):
    """Return the words of `text`, in order: runs of at least two letters.

    Examples
    --------
    >>> words("Tom &amp; Jerry<br>didn\u2019t laugh <3 at o'clock jokes")
    ['tom', 'jerry', "didn't", 'laugh', 'at', 'clock', 'jokes']
    >>> words("red <style>p {color: blue}</style> wine <p hidden>secret</p> 3 km\u00b2")
    ['red', 'wine', 'km']
    """
    return [run for run in _clean(text).split() if _is_word(run)]


def _is_word(run):
    return len(run) > 1 and run[0].isalnum()  # not a mark that stands by itself


@functools.cache
def lemma(word):
    """Return the dictionary form of an English word.

    Where that form is not a word of at least two letters, return the word itself.
    """
    with extra("texts"):
        import simplemma
    form = simplemma.lemmatize(word, lang="en").lower()
    return form if len(form) > 1 and form.isalpha() else word


def term_lemma(word):
    """Return the dictionary form of a word, but leave some numerical terms as they are.

    Examples
    --------
    >>> [term_lemma(word) for word in ("matrices", "axes", "smoothing")]
    ['matrix', 'axes', 'smoothing']
    """
    return word if word in _TERMS else lemma(word)


@dataclass(frozen=True, eq=False)
class _NumberedTexts:
    """The words of texts as numbers, in order and one text after another.

    Some words of the vocabulary may occur in no text.
    """

    numbers: np.ndarray  # of int: positions in the vocabulary
    lengths: np.ndarray  # (m,): how many of the numbers each text has
    vocabulary: list  # the distinct words

    def owners(self):
        """Return the text that each of the numbers belongs to."""
        texts = np.arange(len(self.lengths), dtype=np.int32)
        return np.repeat(texts, self.lengths)

    def take(self, texts):
        """Return the texts at these positions, which ascend."""
        taken = np.isin(np.arange(len(self.lengths)), texts)
        kept = self.numbers[np.repeat(taken, self.lengths)]
        return _NumberedTexts(kept, self.lengths[taken], self.vocabulary)

    def select(self, chosen):
        """Return the texts without the words for which `chosen` is False.

        Examples
        --------
        >>> texts = number_words(["red wine", "wine and wine"])
        >>> texts = texts.select([False, True, True])
        >>> texts.numbers.tolist(), texts.lengths.tolist(), texts.vocabulary
        ([0, 0, 1, 0], [1, 3], ['wine', 'and'])
        """
        new = np.where(chosen, np.cumsum(chosen) - 1, -1)
        return self.renumber(new, list(compress(self.vocabulary, chosen)))

    def renumber(self, new, vocabulary):
        """Return the texts with `new[j]` for j, which is left out where negative."""
        found = np.asarray(new, dtype=np.int32)[self.numbers]
        known = found >= 0
        lengths = np.bincount(self.owners()[known], minlength=len(self.lengths))
        return _NumberedTexts(found[known], lengths, vocabulary)


def number_words(texts, tokenize=None):
    """Return the words of the texts as numbers, counted from 0 as they first occur.

    By default they are those of `words`; of a function's own, blank ones are left out.
    """
    number, lengths = defaultdict(), []
    number.default_factory = number.__len__

    def runs_of_letters():
        for text in progress(texts, desc="Reading words", leave=False, delay=1):
            runs = tokenize(text) if tokenize else _clean(text).split()
            lengths.append(len(runs))
            yield runs

    runs = chain.from_iterable(runs_of_letters())
    numbers = np.fromiter(map(number.__getitem__, runs), dtype=np.int32)
    # np.repeat takes integers of the width of an index: 32 bits in WebAssembly
    lengths = np.array(lengths, dtype=np.intp)
    found = _NumberedTexts(numbers, lengths, list(number))
    is_word = str.strip if tokenize else _is_word
    return found.select([bool(is_word(run)) for run in number])


def lemmas(texts, stop_words, lemmatize):
    """Return the numbered texts as lemmas, in alphabetical order, without stop words.

    Examples
    --------
    >>> texts = lemmas(number_words(["She made two films"]), {"made", "she"}, lemma)
    >>> [texts.vocabulary[number] for number in texts.numbers]
    ['two', 'film']
    """
    # Stop words are looked up before lemmatisation and after it: "having" is one by its
    # lemma "have", "made" by itself, whereas "make" is not a stop word.
    left = (word for word in texts.vocabulary if word not in stop_words)
    forms = {word: lemmatize(word) for word in left}
    vocabulary = sorted(set(forms.values()).difference(stop_words))
    number = {form: j for j, form in enumerate(vocabulary)}
    new = [number.get(forms.get(word), -1) for word in texts.vocabulary]
    return texts.renumber(new, vocabulary)


def ngrams(texts, ngram_range):
    """Return the runs of words of numbered texts, joined by spaces, in their place.

    Examples
    --------
    >>> found = ngrams(number_words(["old red wine", "red wine"]), (2, 3))
    >>> found.vocabulary, found.numbers.tolist()
    (['old red', 'old red wine', 'red wine'], [0, 2, 1, 2])
    """
    # imported here: loading scikit-learn takes seconds in a reader's browser
    from sklearn.feature_extraction.text import CountVectorizer

    tokens = np.array(texts.vocabulary, dtype=object)[texts.numbers]
    analyze = CountVectorizer(
        preprocessor=np.ndarray.tolist, tokenizer=list, ngram_range=ngram_range
    ).build_analyzer()
    parts = np.split(tokens, np.cumsum(texts.lengths)[:-1])
    return lemmas(number_words(parts, analyze), frozenset(), str)


def count(texts):
    """Return how often each of m texts has each of n words, csr_array of int (m, n).

    Rows and columns may be empty.

    Examples
    --------
    >>> count(number_words(["red wine", "wine and wine"])).toarray()
    array([[1, 1, 0],
           [0, 2, 1]])
    """
    shape = len(texts.lengths), len(texts.vocabulary)
    ends = np.concatenate([[0], np.cumsum(texts.lengths)])
    if ends[-1] < 2**31:  # SciPy keeps the wider of the two types of index
        ends = ends.astype(np.int32)
    ones = np.ones(len(texts.numbers), dtype=np.int64)
    # a copy, because adding up duplicates works in place
    Z = sp.csr_array((ones, texts.numbers, ends), shape=shape, copy=True)
    Z.sum_duplicates()
    return Z


def within_bounds(counts, min_df, max_df):
    """Return whether each word is in as many texts as allowed, array of bool (n,).

    Bounds are numbers of texts (int) or proportions (float). False for a word of no
    text; if no word is left, a ValueError is raised.
    """
    m, n = counts.shape
    df = np.bincount(counts.indices, minlength=n)
    low, high = (
        bound if isinstance(bound, numbers.Integral) else bound * m
        for bound in (min_df, max_df)
    )
    within = (df > 0) & (low <= df) & (df <= high)
    if not within.any():
        raise ValueError(
            f"no word is left: of {m} documents, at least min_df={min_df} and"
            f" at most max_df={max_df} must hold it, and stop words do not count. Lower"
            " min_df, raise max_df, pass stop_words=None, or give more text"
        )
    return within
