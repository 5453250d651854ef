"""What is handed in: files, folders, archives and notebooks; what is ambiguous, hostile, or cannot be read."""

import io
import json
import os
import subprocess
import unicodedata
import zipfile

import hostile
import pytest

from amptutorial_course.grading import notebooks, submissions
from amptutorial_course.grading.notebooks import read_notebook
from amptutorial_course.grading.submissions import find_submissions, read_submission

CLASS = "class Mine(Denoiser):\n    pass\n"


def put(path, data=b"x = 1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def collected(folder, kilobytes=2, starter=""):
    entries = find_submissions(folder)
    return {student: read_submission(paths, ["Mine"], kilobytes, starter) for student, paths in entries.items()}


def archive(files, method=zipfile.ZIP_DEFLATED):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", method) as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return data.getvalue()


def notebook(*cells):
    cells = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# Mine"}, *cells]})


def test_what_cannot_be_graded_is_named_with_its_reason(tmp_path):
    texts = {"good": "y = 2", "large": "#" * 3000, "twice": "", "latin": "# café".encode("latin-1")}
    for student, text in texts.items():
        put(tmp_path / student / "denoiser.py", text)
    for name in ("alone.py", "twice.py", "notes.txt", "nested/work.zip"):
        put(tmp_path / name)
    for name in ("empty", "linked", "pipe", "folder/denoiser.py", "__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "linked/denoiser.py").symlink_to(tmp_path / "good/denoiser.py")
    (tmp_path / "friend").symlink_to(tmp_path / "good")
    os.mkfifo(tmp_path / "pipe/denoiser.py")
    put(tmp_path / "damaged.zip", b"PK")
    found = {name: each.source for name, each in collected(tmp_path).items()}
    assert found.pop("good") == b"y = 2" and found.pop("alone") == b"x = 1"
    assert {name: text.split(":")[0] for name, text in found.items()} == {
        "damaged": "damaged.zip cannot be read",
        "empty": "no Python file and no notebook was handed in",
        "folder": "no Python file and no notebook was handed in",
        "friend": "friend was handed in",
        "large": "denoiser.py, or what lies beside it, is larger than 2 kB",
        "latin": "denoiser.py is not encoded in UTF-8",
        "linked": "denoiser.py is a symbolic link",
        "nested": "no Python file and no notebook was handed in, only work.zip",
        "notes": "notes.txt was handed in",
        "pipe": "denoiser.py is not a regular file",
        "twice": "twice was handed in more than once",
    }


LITTER = (
    """._ada.py ~$ada.docx .gitkeep .git/hook.py THUMBS.DB Desktop.ini $RECYCLE.BIN/a.py ada.py~ ada.py.bak ada.py.orig
    .ada.py.swp #ada.py# __MACOSX/ada.py __pycache__/ada.pyc""".split()
    + ["Icon\r"]
)


def test_litter_is_nowhere_a_submission(tmp_path):
    """At the top, in a folder, in an archive; in archives also behind a backslash."""
    names = [*LITTER, *(name.replace("/", "\\") for name in LITTER if "/" in name)]
    put(tmp_path / "ada.py", CLASS)
    put(tmp_path / "bob/ada.py", CLASS)
    put(tmp_path / "li.zip", archive({"ada.py": CLASS} | dict.fromkeys(names, CLASS)))
    for name in LITTER:
        put(tmp_path / name, CLASS)
        put(tmp_path / "bob" / name, CLASS)
    found = collected(tmp_path)
    assert {name: each.source for name, each in found.items()} == dict.fromkeys(["ada", "bob", "li"], CLASS.encode())


def test_files_of_any_name_are_found(tmp_path):
    names = ["x" * 246, "李明", "O'Neil, Zoë", "__bob", "a b", "=1+1", "-x"]
    for name in names:
        put(tmp_path / f"{name}{'.PY' if len(name) < 200 else '.py'}", name)
    put(tmp_path / "deep/home/work/Denoiser.py", "deep")
    put(tmp_path / "other/answer.py", "other")
    found = collected(tmp_path)
    assert {name: found[name].source for name in names} == {name: name.encode() for name in names}
    assert [found[name].source for name in ("deep", "other")] == [b"deep", b"other"]
    assert found["other"].note == ""  # there was no choice


HANDED_IN = [
    ({"denoiser.py": "a", "helper.py": "h", "tools/b.py": "t"}, b"a", {"helper.py": b"h", "tools/b.py": b"t"}),
    ({"work/denoiser.py": "a", "work/h.py": "h", "z.py": "z"}, b"a", {"h.py": b"h"}),
    ({"work\\denoiser.py": "a", "work\\h.py": "h"}, b"a", {"h.py": b"h"}),
    ({"__MACOSX/denoiser.py": "m", "._mine.py": CLASS, "mine.py": CLASS}, CLASS.encode(), {}),
    ({"brief.ipynb": notebook(CLASS), "h.py": "t", "other.ipynb": notebook("x")}, CLASS.encode(), {"h.py": b"t"}),
    ({"brief.ipynb": notebook("check(1)"), "mine.py": CLASS}, CLASS.encode(), {}),
    ({"p/__init__.py": "", "mine.py": CLASS}, CLASS.encode(), {"p/__init__.py": b""}),
]


@pytest.mark.parametrize(("files", "source", "helpers"), HANDED_IN)
def test_an_archive_and_a_folder_have_one_denoiser_and_its_helpers(tmp_path, files, source, helpers):
    put(tmp_path / "ada.zip", archive(files))
    for name, text in files.items():
        put(tmp_path / "bob" / name.replace("\\", "/"), text)
    for found in collected(tmp_path).values():
        assert (found.source, found.helpers) == (source, helpers)


@pytest.mark.parametrize(
    "names",
    ["mine/denoiser.py starter/denoiser.py", "a.py b.py", "mine.py mine.ipynb", "a.py old/denoiser.py"],
)
def test_where_two_files_could_be_meant_both_are_named_and_none_is_graded(tmp_path, names):
    """The starter beside the work, or two attempts."""
    for name in names.split():
        put(tmp_path / "ada" / name, notebook(CLASS) if name.endswith("ipynb") else CLASS)
    put(tmp_path / "li/denoiser.py", "from mine import Mine")  # the class beside one called denoiser
    put(tmp_path / "li/mine.py", CLASS)
    found = collected(tmp_path)
    assert found["li"].source == "which file is denoiser.py: denoiser.py, mine.py? Hand in one of them"
    source = found["ada"].source
    assert source.startswith("which file is denoiser.py") and all(name in source for name in names.split())


def test_an_archive_within_limits_only(tmp_path):
    for files, reason in (
        ({"../denoiser.py": "a"}, "leaves its folder"),
        ({"/etc/denoiser.py": "a"}, "leaves its folder"),
        ({"..\\denoiser.py": "a"}, "leaves its folder"),
        ({"denoiser.py": "a", "b.py": "#" * 3000}, "larger than 2 kB"),
        ({f"{k}.txt": "" for k in range(201)}, "more than 200 files"),
        ({"a/" * 9 + "denoiser.py": CLASS}, "more than 8 deep"),
        ({"denoiser.py": bytes(2**25)}, "larger than 20 MB"),
        ({f"{k}.ipynb": b" " * 2**20 for k in range(30)}, "larger than 20 MB"),
    ):
        put(tmp_path / "ada.zip", archive(files))
        assert reason in collected(tmp_path)["ada"].source


def test_more_that_archives_can_do(tmp_path):
    put(tmp_path / "bzip.zip", archive({"denoiser.py": bytes(2**20)}, zipfile.ZIP_BZIP2))
    linked = zipfile.ZipInfo("denoiser.py")
    linked.external_attr = 0o120777 << 16
    put(tmp_path / "linked.zip", archive({linked: "/etc/passwd"}))
    with pytest.warns(UserWarning, match="Duplicate"), zipfile.ZipFile(tmp_path / "double.zip", "w") as packed:
        packed.writestr("denoiser.py", "a")
        packed.writestr("denoiser.py", "b")
    damaged = bytearray(archive({"denoiser.py": "a" * 99}))
    damaged[45] ^= 255
    put(tmp_path / "damaged.zip", bytes(damaged))
    found = {name: each.source.split(":")[0] for name, each in collected(tmp_path).items()}
    assert found == {
        "bzip": "the archive is packed in an unusual way",
        "damaged": "damaged.zip cannot be read",
        "double": "denoiser.py is in the archive twice",
        "linked": "denoiser.py is a symbolic link",
    }


def test_a_folder_of_any_depth_costs_its_author_only(tmp_path):
    hostile.make_deep(tmp_path / "deep")
    put(tmp_path / "ada.py")
    try:
        found = collected(tmp_path)
    finally:
        subprocess.run(["rm", "-r", tmp_path / "deep"], check=True)  # Python's own functions recurse
    assert found["ada"].source == b"x = 1" and "more than 8 deep" in found["deep"].source


def test_what_a_reader_runs_out_of_is_told_without_the_path_of_the_class(tmp_path, monkeypatch):
    put(tmp_path / "ada.py")

    def out_of(error):
        def read(path):
            raise error

        monkeypatch.setattr(submissions, "read_files", read)
        return collected(tmp_path)["ada"].source

    assert out_of(MemoryError()) == "ada.py cannot be read: MemoryError"
    assert out_of(RecursionError("too deep")) == "ada.py cannot be read: too deep"
    assert out_of(PermissionError(13, "Permission denied", str(tmp_path))) == "ada.py cannot be read: Permission denied"


@pytest.mark.parametrize("change", [str, lambda text: "\ufeff" + text.replace("\n", " \r\n")])
def test_an_untouched_starter_beside_the_work_is_left_aside(tmp_path, change):
    starter = "class Mine(Denoiser):\n    todo = 1\n"
    for student, name, text in (("ada", "work.ipynb", notebook(CLASS)), ("bob", "mine.py", CLASS), ("li", "h.py", "")):
        put(tmp_path / student / "denoiser.py", change(starter))
        put(tmp_path / student / name, text)
    found = collected(tmp_path, starter=starter)
    assert found["ada"].source == found["bob"].source == CLASS.encode()
    assert found["bob"].note == "denoiser.py is mine.py; denoiser.py is as it was handed out, and was left aside"
    assert found["li"].source == change(starter).encode() and found["li"].note == ""
    assert collected(tmp_path)["bob"].note == "mine.py was left aside"


@pytest.mark.parametrize(
    "others", ["denoiser_old.py", "denoiser (1).py mine.ipynb", "old/denoiser.py", "x/y/denoiser.py"]
)
@pytest.mark.parametrize("folder", ["", "work/"])
def test_the_name_that_the_brief_asks_for_is_taken_and_the_others_are_named(tmp_path, others, folder):
    put(tmp_path / f"ada/{folder}denoiser.py", f"{CLASS}# mine\n")
    for name in others.replace(" (", "_(").split():
        put(tmp_path / f"ada/{folder}{name}", notebook(CLASS) if name.endswith("ipynb") else CLASS)
    found = collected(tmp_path)["ada"]
    assert found.source == f"{CLASS}# mine\n".encode()
    assert all(f"{name} was left aside" in found.note for name in others.replace(" (", "_(").split())


def test_a_notebook_that_is_called_a_module_is_read_as_one(tmp_path):
    put(tmp_path / "ada/denoiser.py", notebook(CLASS, "print(1)"))
    put(tmp_path / "bob.py", notebook(CLASS))
    put(tmp_path / "li.py", "{1: 2}\n" + CLASS)  # Python that begins in the same way
    found = collected(tmp_path)
    assert found["ada"].source == found["bob"].source == CLASS.encode()
    assert found["li"].source.startswith(b"{1: 2}")


def test_a_name_is_the_same_however_its_accents_are_written(tmp_path):
    for form in ("NFC", "NFD"):
        put(tmp_path / form / f"{unicodedata.normalize(form, 'Ümit Özgür 李')}.py", CLASS)
    names = [list(find_submissions(tmp_path / form)) for form in ("NFC", "NFD")]
    assert names[0] == names[1] == ["Ümit Özgür 李"]
    put(tmp_path / "NFD/Ümit Özgür 李.py", CLASS)
    assert collected(tmp_path / "NFD")["Ümit Özgür 李"].source.endswith("was handed in more than once: keep one")


def test_much_text_is_searched_in_proportion_to_its_length():
    """A pattern that may go back for each line would take minutes."""
    text = b"class A(" * 30_000 + b"\nclass A(\n" * 30_000
    assert submissions.pick_denoiser({"a.py": text}, ["Mine"], 1000)[0] == text


LOOKS_LIKE_COMMANDS = r'''
class Mine:
    many = """
%d items
!and "more"
? \"""
%s"""
    one = 'it\'s # \
% 3'
    raw = r"""
%\d"""  # don't
    quoted = '"""'
'''


@pytest.mark.parametrize(
    "before",
    ["", *["np.f?", "np.g??  ", "files = !ls x", "  %time x", "%%time", "%matplotlib inline", "?print"]]
    + ["# it's\n!ls 'x", "!echo it's \\\n  '''here"],
)
def test_what_looks_like_a_command_in_a_string_stays(before):
    """The strings are those that Python itself finds, whatever commands of IPython stand before and after."""
    expected, found = {}, {}
    exec(LOOKS_LIKE_COMMANDS, expected)
    cell = f"{before}{LOOKS_LIKE_COMMANDS}!pip list\n" if before else LOOKS_LIKE_COMMANDS
    source = read_notebook(notebook(cell).encode())[0].decode()
    exec(source, found)
    for name in ("many", "one", "raw", "quoted"):
        assert getattr(found["Mine"], name) == getattr(expected["Mine"], name)
    commands = ("matplotlib", "%time", "np.", "files", "echo", "here", "ls 'x", "print", "pip")
    assert not [command for command in commands if command in source]


@pytest.mark.parametrize(
    "line",
    ["np.f?", "np.f? # why", "np.f??;", "pip install x", ">>> 1 + 1", ",f a b", "/f a", "x = %time 1", "await f()"]
    + ["!ls\n!ls", "%%time", "f(1", "x = = 2"],
)
def test_what_a_cell_imports_stays_whatever_else_it_has(line):
    before = f"{line}\nimport numpy as np" if line.startswith("%%") else f"import numpy as np\n{line}"
    source = read_notebook(notebook(before, "class Mine:\n    x = np.pi").encode())[0]
    exec(source, names := {})
    assert names["Mine"].x > 3


def test_a_notebook_that_writes_the_file_is_taken_at_its_word_and_its_author_sees_a_syntax_error():
    cells = ["%%writefile denoiser.py\nx = 1\n", "%%writefile denoiser.py\nx = 2\n", CLASS]
    assert read_notebook(notebook(*cells).encode())[0] == b"x = 2\n"
    assert b"def f(:" in read_notebook(notebook("class Mine(Denoiser):\n    def f(:\n").encode())[0]


def test_a_notebook_that_gives_nothing_is_a_reason():
    assert read_notebook(b"\xff")[0] == "the notebook is not encoded in UTF-8: save it with that encoding"
    for data in (b"", b"{}", b"[]", b'{"cells": [1]}', b"[" * 100_000):
        assert read_notebook(data)[0].startswith("the notebook cannot be read")
    assert read_notebook(notebook("x = 1").encode())[0].startswith("the notebook has no class")
    much = notebook(f"{CLASS}#{'x' * notebooks.MOST_CODE}")
    assert read_notebook(much.encode())[0] == "the cells of the notebook hold more than a megabyte of code"
