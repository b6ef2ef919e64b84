"""Functions over tensors, one module for each family of operations."""
