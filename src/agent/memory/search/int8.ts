/**
 * Vectors as bytes: a quarter of their size, and likeness hardly changes. `norm` is that of the bytes, so that the
 * cosine of two needs neither of what they were made of.
 */
export type Int8Vector = { bytes: Int8Array; norm: number };

const largest = 127;

export const quantised = (vector: ArrayLike<number>): Int8Vector => {
  let extent = 0;
  for (let index = 0; index < vector.length; index += 1) extent = Math.max(extent, Math.abs(vector[index] ?? 0));
  const bytes = new Int8Array(vector.length);
  let squares = 0;
  for (let index = 0; index < vector.length && extent > 0; index += 1) {
    const byte = Math.round(((vector[index] ?? 0) / extent) * largest);
    bytes[index] = byte;
    squares += byte * byte;
  }
  return { bytes, norm: Math.sqrt(squares) };
};

/** The dot product of `vector` with the one that begins at `at` in `all`. */
export const dotAt = (vector: Int8Array, all: Int8Array, at: number): number => {
  let sum = 0;
  for (let index = 0; index < vector.length; index += 1) {
    sum += (vector[index] ?? 0) * (all[at + index] ?? 0);
  }
  return sum;
};
