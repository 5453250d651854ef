"""Messages between judge and worker: a JSON header, then arrays as `numpy.save` writes them.

Nothing in a message could run code. A frame is two lengths, the header, the body. In
the header ``{"__array__": writeable}`` stands for an array, whose bytes are the next
ones of the body.
"""

import io
import json
import math
import struct
import time

import numpy as np

LENGTHS = struct.Struct(">II")
HEADER_LIMIT = 2**17
BODY_LIMIT = 16 * 2**20
NUMBERS = "biuf"  # kinds of dtype


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
    >>> unpack(*read_frame(io.BytesIO(frame).read))
    {'P': array([1., 1.])}
    """
    body = io.BytesIO()

    def plain(value):
        if isinstance(value, np.generic):
            return value.item()
        if not isinstance(value, np.ndarray) or value.dtype.kind not in NUMBERS:
            raise TypeError(f"{type(value).__name__} cannot be sent")
        size = body.tell() + value.nbytes
        if size > BODY_LIMIT - 2**16:  # the descriptions of arrays are short
            raise ValueError(f"arrays of {size / 1e6:.0f} MB are too large to be sent")
        np.save(body, value, allow_pickle=False)
        # whether a check hands over a read-only array is part of the question; its
        # order is, too, and is kept by `numpy.save`
        return {"__array__": bool(value.flags.writeable)}

    header = json.dumps(message, default=plain).encode()
    if len(header) > HEADER_LIMIT:
        raise ValueError(f"names and numbers of {len(header) / 1e3:.0f} kB are too long to be sent")
    return LENGTHS.pack(len(header), body.tell()) + header + body.getvalue()


def unpack(header, body):
    """Return the message of a frame.

    Raises
    ------
    Malformed
        If anything is wrong with it.
    """
    rest = io.BytesIO(body)

    def restore(value):
        if "__array__" not in value:
            return value
        array = _read_array(rest)
        array.flags.writeable = value["__array__"] is True
        return array

    try:
        message = json.loads(bytes(header).decode(), object_hook=restore)
    # whatever hostile bytes make a parser raise
    except Exception as error:  # noqa: BLE001
        raise Malformed(f"{type(error).__name__}: {error}") from None
    if not isinstance(message, dict) or rest.read(1):
        raise Malformed("a message is one JSON object, and arrays that it names")
    return message


def _read_array(rest):
    """Return the next array of the body; nothing is allocated that is not there."""
    np.lib.format.read_magic(rest)
    shape, fortran, dtype = np.lib.format.read_array_header_1_0(rest)
    if dtype.kind not in NUMBERS or any(n < 0 for n in shape):
        raise ValueError(f"not an array of numbers: {dtype}, {shape}")
    data = bytearray(rest.read(math.prod(shape) * dtype.itemsize))
    # `frombuffer` and `reshape` refuse what is too short
    return np.frombuffer(data, dtype).reshape(shape, order="F" if fortran else "C")


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
