// Rows of a table in memory, for the tests of their optimizers.
#ifndef KEELSON_CORE_OPTIM_ROW_OPTIMIZER_TESTING_H_
#define KEELSON_CORE_OPTIM_ROW_OPTIMIZER_TESTING_H_

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "core/optim/optim_testing.h"
#include "core/optim/row_optimizer.h"
#include "gtest/gtest.h"

namespace keelson {

constexpr float kRowRate = 0.05f;

inline std::unique_ptr<RowOptimizer> CreateRows(const std::string& text, size_t dim,
                                                const OptimizerAdjustment& adjustment = {}) {
  auto rows = CreateRowOptimizer(ParseAs<v1::OptimizerConfig>(text), adjustment, dim);
  EXPECT_TRUE(rows.ok()) << rows.status();
  return *std::move(rows);
}

// Sets the slots of a row to their initial values.
inline void InitializeSlots(const RowOptimizer& optimizer, float* row) {
  float* at = row + optimizer.dim();
  for (const RowSlotSpec& slot : optimizer.slots()) {
    at = std::fill_n(at, slot.floats, slot.initial_value);
  }
}

// Rows whose distance is no multiple of a vector, and whose neighbours' floats must stay.
class TestRows {
 public:
  static constexpr float kGap = 12345;

  TestRows(const RowOptimizer& optimizer, size_t n, uint32_t seed)
      : optimizer_(optimizer), n_(n), memory_(1 + n * stride(), kGap), updates_(n), missed_(n) {
    for (size_t i = 0; i < n; ++i) {
      const std::vector<float> values =
          RandomVector(optimizer.dim(), seed + 7 * static_cast<uint32_t>(i));
      std::copy(values.begin(), values.end(), row(i));
      InitializeSlots(optimizer, row(i));
    }
  }
  TestRows(const TestRows&) = delete;

  float* row(size_t i) { return &memory_[1 + i * stride()]; }
  float* slot(size_t i, size_t which) {
    float* at = row(i) + optimizer_.dim();
    for (size_t k = 0; k < which; ++k) at += optimizer_.slots()[k].floats;
    return at;
  }
  std::vector<float> values(size_t i) { return {row(i), row(i) + optimizer_.dim()}; }
  std::vector<uint16_t>& updates() { return updates_; }
  std::vector<uint32_t>& missed() { return missed_; }

  RowBatch Batch(const RowGradients& gradients, int64_t step = 0) {
    pointers_.clear();
    for (size_t i = 0; i < n_; ++i) pointers_.push_back(row(i));
    return {pointers_, gradients, updates_, missed_, step, kRowRate, kRowRate};
  }
  void Update(const RowGradients& gradients, int64_t step = 0) {
    optimizer_.Update(Batch(gradients, step));
    for (uint16_t& updates : updates_)
      updates = static_cast<uint16_t>(std::min(updates + 1, 65535));
  }
  // [row][dim] in float32.
  void Update(const std::vector<float>& gradients, int64_t step = 0) {
    Update({WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(gradients.data()),
            optimizer_.dim() * sizeof(float)},
           step);
  }
  std::vector<uint32_t> MemoryBits() const { return Bits(memory_); }
  bool GapsAreWhole() const {
    bool whole = memory_[0] == kGap;
    for (size_t i = 0; i < n_; ++i) whole = whole && memory_[(i + 1) * stride()] == kGap;
    return whole;
  }

 private:
  size_t stride() const { return optimizer_.row_floats() + 1; }

  const RowOptimizer& optimizer_;
  const size_t n_;
  std::vector<float> memory_;
  std::vector<uint16_t> updates_;
  std::vector<uint32_t> missed_;
  std::vector<float*> pointers_;
};

}  // namespace keelson

#endif  // KEELSON_CORE_OPTIM_ROW_OPTIMIZER_TESTING_H_
