"""Pooling of ONNX models over regions of images."""

from __future__ import annotations

import numpy as np
import pytest

import nxla as nx
from onnx_files import floating, integer, run, text

#: Two images with two channels.
IMAGES = np.random.default_rng(0).uniform(0, 9, (2, 2, 4, 5)).astype(np.float32)


def bilinear(image: np.ndarray, y: float, x: float) -> list[float]:
    """Return the weighted elements around a sample of a channel."""
    height, width = image.shape
    if not (-1 <= y <= height and -1 <= x <= width):
        return [0.0] * 4
    y, x = (min(max(at, 0), size - 1) for at, size in ((y, height), (x, width)))
    top, left = int(y), int(x)
    bottom, right = min(top + 1, height - 1), min(left + 1, width - 1)
    down, over = y - top, x - left
    return [
        (1 - down) * (1 - over) * image[top, left],
        (1 - down) * over * image[top, right],
        down * (1 - over) * image[bottom, left],
        down * over * image[bottom, right],
    ]


@pytest.mark.parametrize("mode", ["avg", "max"])
@pytest.mark.parametrize("transform", ["half_pixel", "output_half_pixel"])
def test_regions_of_images(mode: str, transform: str) -> None:
    regions = np.array([[0, 0, 6, 5], [1.5, 2, 2, 2.5], [-4, 3, 12, 14]], np.float32)
    images, scale, each = np.array([0, 1, 1]), 0.75, 2
    options = [text("mode", mode), text("coordinate_transformation_mode", transform)]
    options += [integer("output_height", 2), integer("output_width", 3)]
    options += [integer("sampling_ratio", each), floating("spatial_scale", scale)]
    found = run("RoiAlign", [IMAGES, regions, images], *options).numpy()
    assert found.shape == (3, 2, 2, 3)
    offset = 0.5 if transform == "half_pixel" else 0.0
    for index, region in enumerate(regions.astype(np.float64) * scale - offset):
        sizes = region[2:] - region[:2]
        width, height = sizes if offset else np.maximum(sizes, 1)
        for channel, row, column in np.ndindex(2, 2, 3):
            samples = []
            for i, j in np.ndindex(each, each):
                y = region[1] + (row + (i + 0.5) / each) * height / 2
                x = region[0] + (column + (j + 0.5) / each) * width / 3
                samples.append(bilinear(IMAGES[images[index], channel], y, x))
            parts = np.array(samples)
            expected = parts.sum(1).mean() if mode == "avg" else parts.max()
            result = found[index, channel, row, column]
            np.testing.assert_allclose(result, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(1, 4, 5), (1, 1, 1, 4, 5)])
def test_images_of_other_ranks_raise(shape: tuple[int, ...]) -> None:
    regions, images = np.zeros((1, 4), np.float32), np.zeros(1, np.int64)
    with pytest.raises(nx.FormatError, match="X, rois: must have 4 axes and 4 columns"):
        run("RoiAlign", [np.ones(shape, np.float32), regions, images])


@pytest.mark.parametrize(
    ("height", "groups", "match"),
    [
        (0, 1, "X: must have elements; got f32"),
        (3, 0, "offset_group: must be positive; got 0"),
        (3, 4, "offset_group: must divide the channels"),
    ],
)
def test_invalid_deformable_convolutions_raise(height: int, groups: int, match: str) -> None:
    shapes = (1, 2, height, 3), (1, 2, 1, 1), (1, 2, height, 3)
    inputs = [np.ones(shape, np.float32) for shape in shapes]
    with pytest.raises(nx.FormatError, match=match):
        run("DeformConv", inputs, integer("offset_group", groups))


def test_adaptive_samples_of_regions_raise() -> None:
    regions, images = np.zeros((1, 4), np.float32), np.zeros(1, np.int64)
    with pytest.raises(nx.ArgumentError, match="sampling_ratio: must be positive"):
        run("RoiAlign", [IMAGES, regions, images])
