"""Linear algebra and Fourier transforms, over the last axes."""
