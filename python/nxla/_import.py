"""Functions of other systems as functions of nxla: StableHLO modules, JAX functions, ONNX models."""

from __future__ import annotations

__all__: list[str] = []
