// Matrices of few entries, for tests.
#ifndef KEELSON_TESTING_DEVICE_SPARSE_TESTING_H_
#define KEELSON_TESTING_DEVICE_SPARSE_TESTING_H_

#include <algorithm>
#include <cstdint>
#include <random>

#include "testing/device/reference_operations.h"

namespace keelson {

// A matrix of `columns` columns, > 0, with `stored` rows; one row of three is not stored, and one
// of five that are has no entries. Row i has up to `most_entries` of them, some in one column, and
// row 1 has 100 more.
inline reference::SparseMatrix RandomSparseMatrix(int64_t stored, int64_t columns,
                                                  int64_t most_entries, uint64_t seed) {
  std::mt19937_64 random(seed);
  reference::SparseMatrix a;
  const auto below = [&random](int64_t n) {
    return static_cast<int32_t>(random() % static_cast<uint64_t>(n));
  };
  for (int64_t k = 0; k < stored; ++k) {
    a.rows.push_back(static_cast<int32_t>(k + k / 2));
    int64_t entries = k % 5 == 3 ? 0 : 1 + below(most_entries);
    if (k == 1) entries += 100;
    for (int64_t i = 0; i < entries; ++i) {
      a.columns.push_back(below(columns));
      a.coefficients.push_back(static_cast<float>(below(2001) - 1000) / 1000);
    }
    a.offsets.push_back(static_cast<int32_t>(a.columns.size()));
  }
  return a;
}

// Its rows are a's columns that have entries.
inline reference::SparseMatrix Transposed(const reference::SparseMatrix& a) {
  reference::SparseMatrix transposed;
  if (a.columns.empty()) return transposed;
  const int32_t columns = *std::max_element(a.columns.begin(), a.columns.end()) + 1;
  for (int32_t column = 0; column < columns; ++column) {
    for (size_t k = 0; k < a.rows.size(); ++k) {
      for (int32_t i = a.offsets[k]; i < a.offsets[k + 1]; ++i) {
        if (a.columns[i] != column) continue;
        transposed.columns.push_back(a.rows[k]);
        transposed.coefficients.push_back(a.coefficients[i]);
      }
    }
    const auto entries = static_cast<int32_t>(transposed.columns.size());
    if (entries == transposed.offsets.back()) continue;
    transposed.rows.push_back(column);
    transposed.offsets.push_back(entries);
  }
  return transposed;
}

}  // namespace keelson

#endif  // KEELSON_TESTING_DEVICE_SPARSE_TESTING_H_
