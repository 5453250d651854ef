"""What is handed in: names of platforms, notebooks, archives, attempts, and files that cannot be read."""

import io
import json
import os
import zipfile
from collections import Counter

import pytest

from amptutorial_course.grading import notebooks
from amptutorial_course.grading.notebooks import notebook_source
from amptutorial_course.grading.submissions import collect_submissions, single_submission

CLASS = "class Mine(Denoiser):\n    pass\n"


def write(folder, **files):
    for name, data in files.items():
        put(folder / name, data)


def put(path, data=b"x = 1"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())


def collected(folder, kilobytes=2):
    return {each.student: each for each in collect_submissions(folder, kilobytes)}


def archive(files):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    return data.getvalue()


def notebook(*cells):
    cells = [{"cell_type": "code", "source": cell.splitlines(keepends=True)} for cell in cells]
    return json.dumps({"cells": [{"cell_type": "markdown", "source": "# Mine"}, *cells]})


def test_what_cannot_be_read_is_named_with_its_reason(tmp_path):
    for student, text in {"good": "y = 2", "large": "#" * 3000, "twice": ""}.items():
        put(tmp_path / student / "denoiser.py", text)
    write(tmp_path, **{"alone.py": "x = 1", "twice.py": "x = 1", "notes.txt": "", ".git": "", "Thumbs.db": ""})
    for name in ("empty", "latin", "linked", "pipe", "folder/denoiser.py", ".hidden", "__pycache__"):
        (tmp_path / name).mkdir(parents=True)
    put(tmp_path / "latin/denoiser.py", "# café".encode("latin-1"))
    (tmp_path / "linked/denoiser.py").symlink_to(tmp_path / "good/denoiser.py")
    (tmp_path / "friend").symlink_to(tmp_path / "good")
    os.mkfifo(tmp_path / "pipe/denoiser.py")
    put(tmp_path / "damaged.zip", b"PK")
    put(tmp_path / "two/a.py", CLASS)
    put(tmp_path / "two/b.py", CLASS)
    found = {name: each.source for name, each in collected(tmp_path).items()}
    assert found.pop("good") == b"y = 2" and found.pop("alone") == b"x = 1"
    assert {name: text.split(":")[0] for name, text in found.items()} == {
        ".hidden": "no file denoiser.py was handed in",
        "damaged": "the archive cannot be read",
        "empty": "no file denoiser.py was handed in",
        "folder": "no file denoiser.py was handed in",
        "friend": "the folder is a symbolic link",
        "large": "the file is larger than 2 kB",
        "latin": "the file is not encoded in UTF-8",
        "linked": "the file is a symbolic link",
        "notes": "no file denoiser.py was handed in, but notes.txt",
        "pipe": "denoiser.py is not a regular file",
        "twice": "handed in twice, as a folder and as a file",
        "two": "which file is denoiser.py",
    }


def test_files_of_any_name_are_found(tmp_path):
    names = ["x" * 246, "李明", "O'Neil, Zoë", ".bob", "__bob", "a b", "=1+1", "-x"]
    for name in names:
        put(tmp_path / f"{name[:80]}.PY" if len(name) < 200 else tmp_path / f"{name}.py", name)
    put(tmp_path / "deep/home/work/Denoiser.py", "deep")
    put(tmp_path / "other/answer.py", "other")
    put(tmp_path / "again/denoiser (1).py", "again")
    found = collected(tmp_path)
    assert {name: found[name].source for name in names} == {name: name.encode() for name in names}
    assert [found[name].source for name in ("deep", "other", "again")] == [b"deep", b"other", b"again"]
    assert found["other"].note == "denoiser.py is answer.py"


def test_canvas_writes_the_owner_into_the_name_of_the_file(tmp_path):
    write(tmp_path, **{
        "lastfirst_12345_67890_denoiser.py": "a", "lastfirst_12345_67891_helper.py": "h",
        "lovelaceada_LATE_777_2_denoiser-1.py": "second", "lovelaceada_LATE_777_1_denoiser.py": "first",
        "liming_8_3_my_work.zip": archive({"work/denoiser.py": "c"}),
    })  # fmt: skip
    found = sorted(collect_submissions(tmp_path, 2), key=lambda each: (each.student, each.attempt))
    assert [(each.student, each.attempt, each.source) for each in found] == [
        ("lastfirst_12345", 1, b"a"),
        ("liming_8", 1, b"c"),
        ("lovelaceada_777", 1, b"first"),
        ("lovelaceada_777", 2, b"second"),
    ]
    assert found[0].helpers == {"helper.py": b"h"} and found[0].owners[0].keys == ("12345", "lastfirst")
    assert found[3].note == "Canvas calls it late"


def test_moodle_writes_the_owner_into_the_name_of_the_folder(tmp_path):
    put(tmp_path / "Ada Lovelace_12345_assignsubmission_file_/denoiser.py", "a")
    put(tmp_path / "Li Ming_67_assignsubmission_file_denoiser.py", "b")
    found = collected(tmp_path)
    assert {name: each.source for name, each in found.items()} == {"Ada Lovelace_12345": b"a", "Li Ming_67": b"b"}
    assert found["Ada Lovelace_12345"].owners[0].keys == ("12345", "Ada Lovelace")


GRADESCOPE = """
submission_1:
  :submitters:
  - :name: Ada Lovelace
    :sid: '7'
    :email: ada@example.org
  - :name: Li Ming
    :sid: '8'
    :email: li@example.org
  :created_at: 2026-10-15 10:00:00.123456789 Z
submission_2:
  :submitters:
  - :name: Emmy Noether
    :email: emmy@example.org
  :created_at: 2026-10-16 10:00:00 Z
"""


def test_gradescope_names_groups_and_times(tmp_path):
    put(tmp_path / "submission_metadata.yml", GRADESCOPE)
    put(tmp_path / "submission_1/denoiser.py", "a")
    put(tmp_path / "submission_2/denoiser.py", "b")
    both, single = collect_submissions(tmp_path, 2)
    assert both.students == ("ada@example.org", "li@example.org") and single.students == ("emmy@example.org",)
    assert (single.handed_in - both.handed_in).total_seconds() == pytest.approx(86400, abs=1)
    put(tmp_path / "submission_metadata.yml", "submission_1: [")
    with pytest.raises(ValueError, match="is not the file that Gradescope exports"):
        collect_submissions(tmp_path, 2)


@pytest.mark.parametrize(
    ("files", "source", "helpers"),
    [
        ({"denoiser.py": "a", "helper.py": "h", "tools/b.py": "t"}, b"a", {"helper.py": b"h", "tools/b.py": b"t"}),
        ({"work/denoiser.py": "a", "work/h.py": "h", "z.py": "z"}, b"a", {"h.py": b"h"}),
        ({"__MACOSX/denoiser.py": "m", "mine.py": CLASS, "test_public.py": "t"}, CLASS.encode(), None),
        ({"brief.ipynb": notebook(CLASS), "test_public.py": "t"}, CLASS.encode(), None),
        ({"../denoiser.py": "a"}, "the file leaves its folder: pack the archive again", {}),
        ({"denoiser.py": "#" * 3000}, "the file is larger than 2 kB", {}),
        ({"denoiser.py": "a", "b.py": "#" * 3000}, "the files beside denoiser.py are larger than 2 kB", {}),
        ({f"{k}.txt": "" for k in range(501)}, "the archive has more than 500 files", {}),
    ],
)
def test_an_archive_is_read_like_a_folder(tmp_path, files, source, helpers):
    put(tmp_path / "ada.zip", archive(files))
    found = collected(tmp_path)["ada"]
    assert found.source == source
    assert helpers is None or found.helpers == helpers


def test_a_bomb_is_not_unpacked(tmp_path):
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("denoiser.py", bytes(2**25))
    put(tmp_path / "ada.zip", data.getvalue())
    assert collected(tmp_path)["ada"].source == "the file is larger than 1000 kB"


def test_a_notebook_gives_the_class_and_what_it_uses():
    cells = [
        "from amptutorial import Denoiser\nimport numpy as np\n%matplotlib inline",
        "from amptutorial_course.assignments import check_assignment\nSCALE = 2\nother = open('no')",
        "def half(x):\n    return x / SCALE",
        "@np.deprecate\nclass Mine(Denoiser):\n    def f(self):\n        return half(1)",
        "check_assignment(1, 'denoiser.py')\n!ls",
        "PREDICTION = 0.5",
    ]
    text = notebook_source(notebook(*cells).encode()).decode()
    assert "check_assignment" not in text and "open" not in text and "%" not in text
    assert [text.count(each) for each in ("SCALE = 2", "def half", "@np", "PREDICTION = 0.5", "import numpy")] == [
        1
    ] * 5


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
    "before", ["", "%matplotlib inline", "%%time", "!echo it's \\\n  '''here", "# it's\n!ls 'x", "?print"]
)
def test_what_looks_like_a_command_in_a_string_stays(before):
    """The strings are those that Python itself finds, whatever commands of IPython stand before and after."""
    expected, found = {}, {}
    exec(LOOKS_LIKE_COMMANDS, expected)
    cell = f"{before}{LOOKS_LIKE_COMMANDS}!pip list\n" if before else LOOKS_LIKE_COMMANDS
    source = notebook_source(notebook(cell).encode()).decode()
    exec(source, found)
    for name in ("many", "one", "raw", "quoted"):
        assert getattr(found["Mine"], name) == getattr(expected["Mine"], name)
    assert not any(command in source for command in ("matplotlib", "%time", "echo", "here", "ls 'x", "print", "pip"))


def test_an_operator_at_the_start_of_a_line_is_no_command():
    source, names = notebook_source(notebook("rest = (7\n% 4)", "class Mine:\n    found = rest")), {}
    exec(source, names)
    assert names["Mine"].found == 7 % 4


def test_a_notebook_gives_each_line_once_with_all_that_changes_a_name():
    cells = [
        "try:\n    import absent\nexcept ImportError:\n    absent = None\n    def spare():\n        return 3",
        "n = 1; n += 1; table = {}\ntable['kept'] = n; print('twice')",
        "other = {}\nother['lost'] = 1",
        "class Mine:\n    found = n, table, spare(), absent",
        "Mine.later = 4",
    ]
    source, names = notebook_source(notebook(*cells)), {}
    exec(source, names)
    assert names["Mine"].found == (2, {"kept": 2}, 3, None) and names["Mine"].later == 4
    assert b"lost" not in source and source.count(b"print") == 1


def test_a_long_notebook_is_read_once(monkeypatch):
    """What is counted is how often each statement is looked at: a chain of uses has as many links as statements."""
    seen = Counter()
    for name in ("_bound", "_used"):
        look = getattr(notebooks, name)
        monkeypatch.setattr(
            notebooks, name, lambda node, look=look, name=name: seen.update([(name, node)]) or look(node)
        )
    chain = [f"a{k} = a{k + 1}" for k in range(300)]
    source = notebook_source(notebook("\n".join(chain), "class Mine:\n    found = a0"))
    assert source.count(b"\n") == 302
    assert len(seen) == 2 * 301 and set(seen.values()) == {1}


def test_a_notebook_with_more_code_than_anybody_writes_is_refused():
    code = f"{CLASS}#{'x' * notebooks.MOST_CODE}"
    assert notebook_source(notebook(code).encode()) == "the cells of the notebook hold more than a megabyte of code"


def test_a_notebook_that_writes_the_file_is_taken_at_its_word():
    cells = ["%%writefile denoiser.py\nx = 1\n", "%%writefile denoiser.py\nx = 2\n", CLASS]
    assert notebook_source(notebook(*cells).encode()) == b"x = 2\n"


def test_a_notebook_with_a_syntax_error_lets_its_author_see_it():
    assert b"def f(:" in notebook_source(notebook("class Mine(Denoiser):\n    def f(:\n").encode())


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"cells": [1]}', b"[" * 100_000, b"\xff"])
def test_a_damaged_notebook_is_a_reason(data):
    assert notebook_source(data).startswith("the notebook cannot be read")
    assert notebook_source(notebook("x = 1").encode()).startswith("the notebook has no class")


def test_a_kilobyte_has_1024_bytes(tmp_path):
    for size in (2048, 2049):
        put(tmp_path / f"{size}.py", b"#" * size)
    found = collected(tmp_path)
    assert found["2048"].source == b"#" * 2048 and found["2049"].source == "the file is larger than 2 kB"


def test_the_file_that_lies_highest_counts(tmp_path):
    put(tmp_path / "ada/denoiser.py", "above")
    put(tmp_path / "ada/old/denoiser.py", "below")
    assert collected(tmp_path)["ada"].source == b"above"


def test_one_file_is_read_as_a_class_is(tmp_path):
    put(tmp_path / "mine.ipynb", notebook(CLASS))
    assert single_submission(tmp_path / "mine.ipynb", 2).source == CLASS.encode()
    with pytest.raises(FileNotFoundError, match="copy the starter there"):
        single_submission(tmp_path / "none.py", 2)
