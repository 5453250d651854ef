"""Many questions of one thing, asked in one visit: a page is opened once, and all that is wrong with it is said."""


def ask(questions, *subject):
    """Ask every question about the subject, and fail with what each says that fails."""
    failed = []
    for question in questions:
        try:
            question(*subject)
        except AssertionError as error:
            failed.append(f"{question.__name__.replace('_', ' ')}: {error}")
    assert not failed, "\n\n".join(failed)
