"""Import StableHLO modules, JAX functions and ONNX models as functions of nxla."""

from __future__ import annotations

__all__: list[str] = []
