"""Messages between judge and worker, whole, malformed and late."""

import io
import socket
import time

import numpy as np
import pytest
from grading_samples import LIMITS, MALFORMED, PROBE, ask_probe, start_probe
from hostile import TOOLS

from amptutorial_course.grading.session import BadAnswer, Session
from amptutorial_course.grading.worker import protocol


def unpacked(message):
    return protocol.unpack(*protocol.read_frame(io.BytesIO(protocol.pack(message)).read))


@pytest.mark.parametrize(
    "value",
    [
        np.zeros((0, 3)), np.arange(6.0).reshape(2, 3), np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.array(2.5), np.array([True, False]), np.arange(3, dtype="u1"), np.ones(2, "f4"), np.arange(4.0)[::-2],
    ],
)  # fmt: skip
def test_arrays_survive_the_protocol(value):
    value.flags.writeable = False
    (back,) = unpacked({"x": [value]})["x"]
    np.testing.assert_array_equal(back, value)
    assert (back.dtype, back.flags.fnc, back.flags.writeable) == (value.dtype, value.flags.fnc, False)


def test_other_values_survive_the_protocol_or_are_refused():
    message = {"a": [1, 2.5, None, "text", True], "b": {"c": np.inf}}
    assert unpacked(message | {"d": np.int64(3)}) == message | {"d": 3}
    for value, told in ((1j, "complex cannot be sent"), (np.array([{}]), "cannot be sent")):
        with pytest.raises(TypeError, match=told):
            protocol.pack({"x": value})


@pytest.mark.parametrize("parts", [1, 2])
def test_no_frame_is_much_larger_than_what_was_sent(parts):
    assert protocol.HEADER_LIMIT + protocol.BODY_LIMIT < 2**25
    with pytest.raises(ValueError, match="too large to be sent"):
        protocol.pack({"x": [np.zeros(protocol.BODY_LIMIT // (8 * parts) + 1)] * parts})


@pytest.mark.parametrize(("header", "body"), MALFORMED.values(), ids=MALFORMED)
def test_malformed_messages_are_the_author_s_failure(header, body):
    with pytest.raises(protocol.Malformed):
        protocol.unpack(header, body)


EARLY = [
    (b"", EOFError),
    (b"\x00\x00", EOFError),
    (protocol.LENGTHS.pack(2**31, 0), protocol.Malformed),
    (protocol.LENGTHS.pack(2, 2**31), protocol.Malformed),
    (protocol.LENGTHS.pack(10, 0) + b"{}", EOFError),
    (protocol.LENGTHS.pack(10, 0), TimeoutError),  # the other side stays silent
]


@pytest.mark.parametrize(("data", "error"), EARLY)
def test_frames_that_end_early_are_too_large_or_come_too_late(data, error):
    ours, theirs = socket.socketpair()
    late = error is TimeoutError
    with ours, theirs:
        theirs.sendall(data)
        if not late:
            theirs.shutdown(socket.SHUT_WR)
        with pytest.raises(error):
            protocol.receive(ours, time.monotonic() + (0.05 if late else 5))


def test_noise_on_the_socket_is_a_bad_answer(impatient):
    noise = "[os.write(n, b'noise' * 9) for n in range(3, 999) if sockets(n)]"
    noisy = "import os\n" + TOOLS + PROBE.replace("sys.exit(3)", noise)
    with Session(noisy.encode(), LIMITS) as session:
        probe = start_probe(session)
        with pytest.raises(BadAnswer, match="estimate gave no valid answer"):
            ask_probe(probe, 7)
