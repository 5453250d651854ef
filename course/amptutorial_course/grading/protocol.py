"""Messages between judge and worker: a JSON header and the raw bytes of arrays.

Nothing in a message could run code.

A frame is two lengths, the header, the body. In the header an array is ``{"__array__":
[dtype, shape, order, writeable]}``. The body holds the bytes of the arrays in the order
in which the header names them, and nothing else: no byte is named twice.
"""

import io
import json
import math
import re
import struct
import time

import numpy as np

LENGTHS = struct.Struct(">II")
HEADER_LIMIT = 2**17
BODY_LIMIT = 16 * 2**20
NUMBERS = re.compile(r"[<>|][biuf]\d{1,2}")


class Malformed(Exception):
    """Bytes that are not a message of this protocol."""


def pack(message):
    """Return the frame of `message`.

    A message consists of JSON values, NumPy numbers, and arrays of booleans, integers
    and floats.

    Raises
    ------
    TypeError, ValueError
        If the message holds anything else, or too much.

    Examples
    --------
    >>> frame = pack({"P": np.ones(2)})
    >>> unpack(*split(frame))
    {'P': array([1., 1.])}
    """
    body = bytearray()

    def plain(value):
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray):
            raise TypeError(f"{type(value).__name__} cannot be sent")
        size = len(body) + value.nbytes
        if size > BODY_LIMIT:
            raise ValueError(f"arrays of {size / 1e6:.0f} MB are too large to be sent")
        # whether a check hands over a Fortran-ordered or a read-only array is part of
        # the question
        order, writeable = "F" if value.flags.fnc else "C", bool(value.flags.writeable)
        body.extend(value.tobytes(order))
        return {"__array__": [value.dtype.str, value.shape, order, writeable]}

    header = json.dumps(message, default=plain).encode()
    return LENGTHS.pack(len(header), len(body)) + header + body


def split(frame):
    """Return `(header, body)` of a frame."""
    n_header, n_body = LENGTHS.unpack_from(frame)
    start = LENGTHS.size + n_header
    return frame[LENGTHS.size : start], frame[start : start + n_body]


def unpack(header, body):
    """Return the message of a frame.

    Raises
    ------
    Malformed
        If anything is wrong with it.
    """
    rest = io.BytesIO(body)

    def restore(value):
        return _array(value["__array__"], rest) if "__array__" in value else value

    try:
        message = json.loads(bytes(header).decode(), object_hook=restore)
    except (ValueError, RecursionError) as error:
        raise Malformed(f"not a JSON header: {error}") from None
    if not isinstance(message, dict):
        raise Malformed("the header is not a JSON object")
    if rest.read(1):
        raise Malformed("the header does not name all bytes of the body")
    return message


def _array(entry, rest):
    """Return the array of an entry of the header, without trusting any part of it.

    Its bytes are the next ones of `rest`.
    """
    try:
        dtype, shape, order, writeable = entry
        shape = [*shape]
    except (TypeError, ValueError):
        raise Malformed("an array must be described by four values") from None
    if not (isinstance(dtype, str) and NUMBERS.fullmatch(dtype)):
        raise Malformed(f"not an array of numbers: dtype {str(dtype)[:20]}")
    if len(shape) > 8 or not all(
        type(n) is int and 0 <= n <= BODY_LIMIT for n in shape
    ):
        raise Malformed("the shape of an array must be small non-negative integers")
    try:
        kind = np.dtype(dtype)
    except TypeError as error:
        raise Malformed(str(error)) from None
    n_bytes = math.prod(shape) * kind.itemsize
    if n_bytes > BODY_LIMIT or len(data := bytearray(rest.read(n_bytes))) < n_bytes:
        raise Malformed("an array reaches beyond the end of the message")
    array = np.frombuffer(data, kind).reshape(shape, order="F" if order == "F" else "C")
    array.flags.writeable = writeable is True
    return array


def read_frame(read):
    """Return `(header, body)` of the next frame.

    Parameters
    ----------
    read : callable (int) -> bytes
        Returns at most so many bytes, and none at the end.

    Raises
    ------
    EOFError
        If the other side has closed the connection.
    Malformed
        If the lengths exceed the limits; nothing more is read then.
    """
    n_header, n_body = LENGTHS.unpack(_exactly(read, LENGTHS.size))
    if n_header > HEADER_LIMIT or n_body > BODY_LIMIT:
        raise Malformed(f"a message of {(n_header + n_body) / 1e6:.0f} MB")
    return _exactly(read, n_header), _exactly(read, n_body)


def _exactly(read, size):
    data = bytearray()
    while len(data) < size:
        piece = read(min(size - len(data), 2**20))
        if not piece:
            raise EOFError
        data += piece
    return data


def receive(channel, deadline):
    """Return the next message of a socket.

    Raises
    ------
    TimeoutError
        If the message is not complete at `deadline`, by `time.monotonic`.
    EOFError, Malformed
        As in `read_frame` and `unpack`.
    """

    def read(size):
        channel.settimeout(max(deadline - time.monotonic(), 1e-3))
        return channel.recv(size)

    return unpack(*read_frame(read))


def send(channel, message, deadline):
    """Send a message to a socket.

    Raises
    ------
    TimeoutError
        If the message is not sent at `deadline`, by `time.monotonic`.
    BrokenPipeError
        If the other side has closed the connection.
    """
    channel.settimeout(max(deadline - time.monotonic(), 1e-3))
    channel.sendall(pack(message))
