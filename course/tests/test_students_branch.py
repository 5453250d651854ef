"""Keeping solutions private: what the page for lecturers says, done literally with local repositories."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from amptutorial_course.assignments import ASSIGNMENTS
from amptutorial_course.grading import students_branch

ROOT = Path(__file__).parents[1]
PAGE = (ROOT.parent / "book/instructors.md").read_text(encoding="utf-8")
SECRET = "class RidgeByHand(Denoiser):\n    def estimate(self, P, r, F):\n        return 'the answer'\n"
AUTHOR = ("-c", "user.name=Lecturer", "-c", "user.email=lecturer@example.org")


def git(folder, *arguments, check=True):
    return subprocess.run(["git", "-C", folder, *arguments], check=check, capture_output=True, text=True)


def commands():
    """Return the commands of the section, a shell script."""
    section = PAGE[PAGE.index("(instructors-private)=") : PAGE.index("(instructors-nbgrader)=")]
    return re.search(r"```bash\n(.*?)```", section, re.DOTALL)[1]


@pytest.fixture
def public(tmp_path):
    """Return a small public repository: a package's worth of files, and solutions."""
    folder = tmp_path / "public"
    for name, text in {
        "README.md": "hello", "assignments/grading.yml": "seed: 1", "assignments/01_ridge/denoiser.py": "# write",
        "solutions/01_ridge/denoiser.py": SECRET, "solutions/exam.md": "answers",
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(tmp_path, "init", "--quiet", "--initial-branch", "main", folder)
    git(folder, "add", "--all")
    git(folder, *AUTHOR, "commit", "--quiet", "-m", "All")
    for name in ("teachers", "students"):
        git(tmp_path, "init", "--quiet", "--bare", tmp_path / f"{name}.git")
    return folder


def everything(repository):
    """Return all texts that anybody who can read a repository can read, in all its history."""
    listed = git(repository, "rev-list", "--all", "--objects").stdout.split("\n")
    objects = [line.split(" ")[0] for line in listed if line]
    kinds = {each: git(repository, "cat-file", "-t", each).stdout.strip() for each in objects}
    return listed, [git(repository, "cat-file", "blob", each).stdout for each in objects if kinds[each] == "blob"]


def do_literally(tmp_path, public):
    """Run the commands of the page, with local addresses."""
    text = commands().replace("https://github.com/amptutorial/amptutorial", str(public))
    text = text.replace("git@example.org:you/course.git", str(tmp_path / "teachers.git"))
    text = text.replace("git@example.org:you/students.git", str(tmp_path / "students.git"))
    text = text.replace("make setup", "true").replace(".venv/bin/python", sys.executable)
    assert str(public) in text and text.count(str(tmp_path / "students.git")) >= 1 and "example.org" not in text
    return subprocess.run(["sh", "-ec", text], cwd=tmp_path, capture_output=True, text=True, env=environment())


def environment():
    author = {f"GIT_{who}_{what}": "x@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
    return {**os.environ, **author, "PYTHONPATH": str(ROOT)}


def test_the_page_done_literally_keeps_the_solutions(tmp_path, public):
    done = do_literally(tmp_path, public)
    assert done.returncode == 0, done.stderr
    names, texts = everything(tmp_path / "students.git")
    assert "hello" in texts and "# write" in texts
    assert SECRET not in texts and "answers" not in texts and "seed: 1" not in texts
    assert not any("solutions" in name or "grading.yml" in name for name in names)
    assert SECRET in everything(tmp_path / "teachers.git")[1]
    branches = [
        git(tmp_path / f"{name}.git", "branch", "--format=%(refname:short)").stdout for name in ("teachers", "students")
    ]
    assert branches == ["main\n", "students\n"]


def test_solutions_are_not_pushed_to_the_students(tmp_path, public):
    assert do_literally(tmp_path, public).returncode == 0
    address, before = str(tmp_path / "students.git"), everything(tmp_path / "students.git")
    course, students = tmp_path / "course", tmp_path / "students"
    pushed = git(course, "push", address, "main", check=False)
    assert pushed.returncode and "has assignments/grading.yml solutions/01_ridge/denoiser.py" in pushed.stderr
    git(students, "fetch", "--quiet", course, "main")
    for branch in ("FETCH_HEAD:refs/heads/other", "FETCH_HEAD:refs/heads/students"):
        assert git(students, "push", "--force", "origin", branch, check=False).returncode
    (students / "solutions").mkdir()
    (students / "solutions/mine.py").write_text(SECRET)
    git(students, "add", "--all")
    git(students, *AUTHOR, "commit", "--quiet", "-m", "by mistake")
    git(students, "rm", "-r", "--quiet", "solutions")
    git(students, *AUTHOR, "commit", "--quiet", "-m", "removed, but in the history")
    assert git(students, "push", check=False).returncode
    assert everything(tmp_path / "students.git") == before
    with pytest.raises(ValueError, match="has solutions in its history"):
        students_branch.write_branch(course, students)
    git(course, "push", "--quiet", "origin", "main")


def test_the_students_place_is_known_by_each_of_its_addresses(tmp_path, public):
    assert do_literally(tmp_path, public).returncode == 0
    course, students = tmp_path / "course", tmp_path / "students.git"
    (tmp_path / "link").symlink_to(students)
    for address in ("../students.git", f"file://{students}", str(tmp_path / "link"), f"{students}/"):
        assert git(course, "push", address, "main", check=False).returncode
    assert "refs/heads/main" not in git(students, "show-ref").stdout
    git(course, "config", "amptutorial.students", "git@example.org:you/students.git")
    line = f"refs/heads/main {git(course, 'rev-parse', 'HEAD').stdout.strip()} refs/heads/main {'0' * 40}\n"
    for address, refused in {
        "https://example.org/You/students": True, "ssh://git@example.org/you/students.git": True,
        "git@example.org:you/course.git": False, "https://example.org/others/students.git": False,
    }.items():  # fmt: skip
        hook = [course / ".git/hooks/pre-push", "any", address]
        done = subprocess.run(hook, cwd=course, input=line, capture_output=True, text=True)
        assert bool(done.returncode) == refused, address


def test_corrections_come_as_a_commit_on_top(tmp_path, public):
    folder = tmp_path / "students"
    assert students_branch.write_branch(public, folder) == "new"
    (folder / ".venv").symlink_to(public, target_is_directory=True)
    assert students_branch.write_branch(public, folder) == "unchanged"
    assert (public / "solutions").is_dir()
    git(public, "rm", "--quiet", "README.md")
    git(public, *AUTHOR, "commit", "--quiet", "-m", "No README")
    assert students_branch.write_branch(public, folder) == "changed"
    assert not (folder / "README.md").exists() and git(folder, "rev-list", "--count", "HEAD").stdout == "2\n"


def test_folders_and_hooks_of_others_are_left_alone(tmp_path, public, capsys, monkeypatch):
    folder = tmp_path / "full"
    folder.mkdir()
    (folder / "mine.txt").touch()
    monkeypatch.chdir(public)
    for place in (folder, public):
        assert students_branch.main([str(place)]) == 1
    assert "is not empty" in capsys.readouterr().err and (public / "README.md").is_file()
    hook = public / ".git/hooks/pre-push"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    assert students_branch.main([str(tmp_path / "new"), "--remote", "somewhere"]) == 1
    assert "there is a hook in the way" in capsys.readouterr().err and hook.read_text() == "#!/bin/sh\n"


def test_a_class_that_lies_in_the_clone_is_not_committed(public):
    """What is committed goes to the students: the files that the page names stay outside, grades above all."""
    found = re.findall(
        r"^\.venv/bin/python (?:-m amptutorial\.grading|course/sample_class\.py) (.*)$", PAGE, re.MULTILINE
    )
    words = {word for line in found for word in line.split() if re.fullmatch(r"[a-z]+(\.csv|/)", word)}
    assert {"submissions/", "sample/", "grades.csv", "gradebook.csv"} <= words
    (public / ".gitignore").write_bytes((ROOT / ".gitignore").read_bytes())
    for word in {*words, "grades_files/", "grades_canvas.csv", "marks.csv", "first/", "second/", "01_ridge.zip"}:
        (public / word).mkdir() if word.endswith("/") else (public / word).touch()
        if word.endswith("/"):
            (public / word / "ada.py").touch()
    git(public, "add", "--all")
    assert git(public, "diff", "--cached", "--name-only").stdout == ".gitignore\n"


@pytest.mark.slow
def test_on_the_students_side_tests_are_skipped_and_do_not_fail(tmp_path):
    """Those of the assignments: their other files skip as a whole."""
    for name in ("amptutorial", "assignments", "tests", "tools"):
        ignore = shutil.ignore_patterns("grading.yml", "__pycache__")
        shutil.copytree(ROOT / name, tmp_path / name, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    chosen = "not slow", "-k", "starter or inherited or points or bank"
    command = [sys.executable, "-m", "pytest", "-n", "0", "-q", "tests/test_assignments.py", "-m", *chosen]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(tmp_path)}
    )
    assert done.returncode == 0, done.stdout
    assert re.search(r"passed, \d+ skipped", done.stdout)


def test_no_test_and_no_tool_holds_a_solution():
    """A solution is a class of an assignment whose estimate computes something."""
    names = {setting.class_name for task in ASSIGNMENTS.values() for setting in task.public()}
    for path in [*ROOT.glob("tests/*.py"), *ROOT.glob("tools/*.py"), *ROOT.glob("course/amptutorial_course/grading/*.py")]:
        text = path.read_text(encoding="utf-8")
        strings = [n.value for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Constant) and type(n.value) is str]
        for piece in [text, *strings]:
            assert not solved(piece) & names, path


def solved(text):
    """Return the names of the classes in a text whose `estimate` returns more than a constant."""
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return set()
    return {
        node.name
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef) and method.name == "estimate"
        for answer in ast.walk(method)
        if isinstance(answer, ast.Return) and any(isinstance(part, ast.Call) for part in ast.walk(answer))
    }
