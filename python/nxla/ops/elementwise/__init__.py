"""Functions of single elements, applied to whole tensors; operands broadcast."""
