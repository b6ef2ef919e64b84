"""Element types under the names of the Python Array API standard.

Functions with a dtype argument also accept the short name (``"f32"``), the long name
(``"float32"``), Python's ``bool``, ``int``, ``float`` and ``complex``, and NumPy dtypes.
"""

from nxla import _core

bool = _core.pred
int2 = _core.s2
int4 = _core.s4
int8 = _core.s8
int16 = _core.s16
int32 = _core.s32
int64 = _core.s64
uint2 = _core.u2
uint4 = _core.u4
uint8 = _core.u8
uint16 = _core.u16
uint32 = _core.u32
uint64 = _core.u64
float8_e5m2 = _core.f8_e5m2
float8_e4m3fn = _core.f8_e4m3fn
bfloat16 = _core.bf16
float16 = _core.f16
float32 = _core.f32
float64 = _core.f64
complex64 = _core.c64
complex128 = _core.c128
