"""Small sets of labelled images for short trainings."""

import os
import random
import struct

PIXELS = 9


def make_records(count, seed):
    """(pixels, label): bright images are brighter by less than the noise."""
    generator = random.Random(seed)
    records = []
    for _ in range(count):
        label = int(generator.random() < 0.4)
        records.append(([min(255, generator.randrange(0, 200) + 55 * label) for _ in range(PIXELS)], label))
    return records


def write_idx(directory, name, records):
    with open(os.path.join(directory, f"{name}-images-idx3-ubyte"), "wb") as file:
        file.write(struct.pack(">IIII", 0x803, len(records), 3, 3))
        file.write(bytes(pixel for pixels, _ in records for pixel in pixels))
    with open(os.path.join(directory, f"{name}-labels-idx1-ubyte"), "wb") as file:
        file.write(struct.pack(">II", 0x801, len(records)))
        file.write(bytes(label for _, label in records))
