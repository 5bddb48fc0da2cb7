// Sizes that every kernel of the family is given.
#pragma once

// Rows of q, k, g: [token, head, K]; of v, o: [token, head, V].
struct Shape {
  int heads, key_channels, value_channels;
  bool vector;  // K and V are multiples of 8: rows may be loaded 16 bytes at a time
  __device__ int key_groups() const { return (key_channels + 15) >> 4; }
  __device__ int value_groups() const { return (value_channels + 15) >> 4; }
};
