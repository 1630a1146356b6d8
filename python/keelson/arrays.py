"""Arrays of others, whatever library they are of, as bytes of float32: by the buffer protocol, or by DLPack."""

from __future__ import annotations

import array
import ctypes
import math
from typing import Any, List, NamedTuple, Sequence, Tuple, Union

_CPU = 1
_DLPACK_FLOAT = 2
_FLOAT32, _FLOAT64 = "f", "d"
_INTEGERS = ("q", "Q", "l", "L")
_ID_MASK = (1 << 64) - 1


class Floats(NamedTuple):
    """float32 in C order."""

    shape: Tuple[int, ...]
    data: memoryview  # of bytes


def floats_of(value: Any) -> Floats:
    """`value`: a number, an array of float32 or float64, of NumPy or any other library, or nested lists of numbers. What
    has float32 in C order is not copied. TypeError: it is none of these."""
    if isinstance(value, (int, float)):
        return Floats((), _bytes(array.array("f", [value])))
    if isinstance(value, (list, tuple)):
        shape, numbers = _flattened(value)
        return Floats(shape, _bytes(array.array("f", numbers)))
    try:
        view = memoryview(value)
        if view.format == _FLOAT32 and view.c_contiguous:
            return Floats(view.shape or (), _bytes(view))
    except TypeError:
        if hasattr(value, "__dlpack__"):
            return _from_dlpack(value)
        raise TypeError(f"expected an array of float32, found {type(value).__name__}") from None
    return _from_view(view)


def ids_of(value: Any) -> memoryview:
    """`value`: an array of int64 or uint64 of the buffer protocol, or integers. What has them in C order is not copied; a
    negative number is the id with the same bits. As bytes. TypeError: it is neither."""
    if isinstance(value, (list, tuple)):
        return _bytes(array.array("Q", [number & _ID_MASK for number in value]))
    view = memoryview(value)
    if view.itemsize != 8 or view.format is None or view.format.lstrip("<=@") not in _INTEGERS:
        raise TypeError(f"ids: expected an array of int64, found the format {view.format!r}")
    return _bytes(view)


def shaped(data: memoryview, shape: Sequence[int]) -> memoryview[float]:
    """Bytes as an array of float32 in C order; also of no rows, of which memoryview.cast makes none."""
    if data.nbytes > 0:
        return data.cast("f", tuple(shape))
    one_row = bytes(4 * math.prod(shape[1:]))
    return memoryview(one_row).cast("f", (1, *shape[1:]))[:0]


def is_finite(data: memoryview) -> bool:
    """Of bytes of float32. The sum of finite ones cannot overflow a double."""
    return math.isfinite(sum(data.cast("f")))


def _from_view(view: memoryview) -> Floats:
    code = view.format.lstrip("<=@") if view.format else ""
    if code == _FLOAT32:
        return Floats(tuple(view.shape or ()), _bytes(view))
    if code == _FLOAT64:
        doubles = array.array("d", view.tobytes())
        return Floats(tuple(view.shape or ()), _bytes(array.array("f", doubles)))
    raise TypeError(f"expected an array of float32, found the format {view.format!r}")


def _bytes(numbers: Union[array.array[Any], memoryview[Any]]) -> memoryview:
    """A copy only where they are not in C order."""
    view = memoryview(numbers)
    if view.nbytes == 0:
        return memoryview(b"")
    return view.cast("B") if view.c_contiguous else memoryview(view.tobytes())


def _flattened(value: Any) -> Tuple[Tuple[int, ...], List[float]]:
    if not isinstance(value, (list, tuple)):
        return (), [float(value)]
    parts = [_flattened(part) for part in value]
    if not parts or any(shape != parts[0][0] for shape, _ in parts):
        raise TypeError("expected lists of equal lengths, found a ragged or an empty one")
    return (len(parts), *parts[0][0]), [number for _, numbers in parts for number in numbers]


class _DlTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("type_code", ctypes.c_uint8),
        ("type_bits", ctypes.c_uint8),
        ("type_lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


def _from_dlpack(value: Any) -> Floats:
    """A copy: the capsule, which nobody takes over, frees what it holds when it goes."""
    capsule = value.__dlpack__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    tensor = ctypes.cast(get_pointer(capsule, b"dltensor"), ctypes.POINTER(_DlTensor)).contents
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.device_type != _CPU:
        raise TypeError(
            f"expected an array in the host's memory, found one on a device of DLPack's type {tensor.device_type}"
        )
    if (tensor.type_code, tensor.type_bits, tensor.type_lanes) != (_DLPACK_FLOAT, 32, 1):
        raise TypeError(
            f"expected an array of float32, found DLPack's type {tensor.type_code} of {tensor.type_bits} bits"
        )
    if tensor.strides and not _in_c_order(shape, [tensor.strides[i] for i in range(tensor.ndim)]):
        raise TypeError("expected an array in C order, found other strides")
    elements = math.prod(shape)
    begin = (tensor.data or 0) + tensor.byte_offset
    return Floats(shape, memoryview(ctypes.string_at(begin, 4 * elements)))


def _in_c_order(shape: Tuple[int, ...], strides: List[int]) -> bool:
    count = 1
    for extent, stride in zip(reversed(shape), reversed(strides)):
        if extent > 1 and stride != count:
            return False
        count *= extent
    return True
