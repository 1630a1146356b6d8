// Row optimizers on every wire format and instruction set, and in batches of any kind.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "core/optim/row_optimizer.h"
#include "core/optim/row_optimizer_testing.h"
#include "core/wire/simd_targets_testing.h"
#include "core/wire/value_codec.h"

namespace keelson {
namespace {

// Every rule and way of catching up, on every instruction set and wire format.
class RowBitsTest : public testing::TestWithParam<const char*> {
 protected:
  static std::unique_ptr<RowOptimizer> Make(size_t dim) {
    OptimizerAdjustment adjustment;
    std::string text = GetParam();
    if (const size_t at = text.find(" decay"); at != std::string::npos) {
      text.resize(at);
      adjustment.weight_decay = 0.25f;
      adjustment.exact_weight_decay = true;
    }
    return CreateRows(text, dim, adjustment);
  }

  // Some rows after a few updates with gaps between them.
  static std::vector<uint32_t> Trained(const RowOptimizer& optimizer, size_t n,
                                       const std::vector<RowGradients>& gradients) {
    TestRows rows(optimizer, n, 1);
    int64_t step = 30;
    for (const RowGradients& g : gradients) {
      for (size_t i = 0; i < n; ++i) rows.missed()[i] = static_cast<uint32_t>(i % 4 == 0 ? 0 : i);
      rows.Update(g, step);
      step += 1 + static_cast<int64_t>(n);
    }
    EXPECT_TRUE(rows.GapsAreWhole());
    return rows.MemoryBits();
  }

  // At an odd address and with an odd stride.
  struct Encoded {
    Encoded(WireFormat format, size_t dim, const std::vector<float>& gradients) {
      const size_t n = gradients.size() / dim;
      const size_t bytes = format == WireFormat::kInt8 ? 4 + dim : dim * ElementBytes(format);
      rows = {format, nullptr, bytes + 1 + bytes % 2};
      memory.resize(1 + n * rows.stride);
      rows.data = memory.data() + 1;
      for (size_t i = 0; i < n; ++i) {
        const absl::Span<const float> row = absl::MakeConstSpan(gradients).subspan(i * dim, dim);
        uint8_t* const at = memory.data() + 1 + i * rows.stride;
        decoded.resize(decoded.size() + dim);
        const absl::Span<float> out = absl::MakeSpan(decoded).last(dim);
        if (format == WireFormat::kInt8) {
          const float scale = 0.02f + 0.001f * static_cast<float>(i);
          std::memcpy(at, &scale, sizeof(scale));
          for (size_t e = 0; e < dim; ++e) at[4 + e] = static_cast<uint8_t>(31 * e + 7 * i);
          DecodeInt8Group(scale, at + 4, out);
        } else {
          EncodeElements(format, row, at);
          DecodeElements(format, at, out);
        }
      }
    }
    Encoded(const Encoded&) = delete;

    RowGradients rows;
    std::vector<uint8_t> memory;
    std::vector<float> decoded;
  };
};

TEST_P(RowBitsTest, AreTheSameOnEveryInstructionSetAndInEveryFormat) {
  for (const size_t dim : {1, 3, 7, 8, 15, 16, 17, 33, 64, 1024}) {
    const size_t n = dim > 100 ? 5 : 21;
    const std::unique_ptr<RowOptimizer> optimizer = Make(dim);
    for (const WireFormat format :
         {WireFormat::kFloat32, WireFormat::kFloat16, WireFormat::kBfloat16, WireFormat::kInt8}) {
      const Encoded encoded(format, dim, RandomVector(n * dim, 5u));
      const RowGradients decoded = {WireFormat::kFloat32,
                                    reinterpret_cast<const uint8_t*>(encoded.decoded.data()),
                                    dim * sizeof(float)};
      const std::vector<uint32_t> expected = Trained(*optimizer, n, {decoded, decoded, decoded});
      ForEachInstructionSet([&] {
        EXPECT_EQ(Trained(*optimizer, n, {encoded.rows, encoded.rows, encoded.rows}), expected)
            << dim;
      });
    }
  }
}

TEST_P(RowBitsTest, DoNotDependOnTheOtherRowsOfTheBatch) {
  constexpr size_t kDim = 9, kRows = 200;
  const std::unique_ptr<RowOptimizer> optimizer = Make(kDim);
  const std::vector<float> gradients = RandomVector(kRows * kDim, 2u);
  TestRows together(*optimizer, kRows, 3), apart(*optimizer, kRows, 3);
  for (size_t i = 0; i < kRows; ++i) {
    together.missed()[i] = apart.missed()[i] = static_cast<uint32_t>(i);
    together.updates()[i] = apart.updates()[i] = static_cast<uint16_t>(i);
  }
  together.Update(gradients, 500);
  for (size_t i = 0; i < kRows; ++i) {
    RowBatch batch = apart.Batch(
        {WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(&gradients[i * kDim]), 0}, 500);
    batch.rows = batch.rows.subspan(i, 1);
    batch.updates = batch.updates.subspan(i, 1);
    batch.missed = batch.missed.subspan(i, 1);
    optimizer->Update(batch);
  }
  EXPECT_EQ(together.MemoryBits(), apart.MemoryBits());
}

TEST_P(RowBitsTest, SkipsRowsThatAreNot) {
  constexpr size_t kDim = 5;
  const std::unique_ptr<RowOptimizer> optimizer = Make(kDim);
  const std::vector<float> gradients = RandomVector(3 * kDim, 2u);
  const RowGradients g = {WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(gradients.data()),
                          kDim * sizeof(float)};
  TestRows all(*optimizer, 3, 3), some(*optimizer, 3, 3);
  const std::vector<uint32_t> before = some.MemoryBits();
  all.Update(g, 7);
  RowBatch batch = some.Batch(g, 7);
  const std::vector<float*> pointers = {some.row(0), nullptr, some.row(2)};
  batch.rows = pointers;
  optimizer->Update(batch);
  for (const size_t i : {0, 2}) EXPECT_EQ(Bits(some.values(i)), Bits(all.values(i)));
  EXPECT_NE(some.MemoryBits(), before);
  std::copy_n(all.row(1), optimizer->row_floats(), some.row(1));
  EXPECT_EQ(some.MemoryBits(), all.MemoryBits());
}

TEST_P(RowBitsTest, NanStaysInItsRow) {
  constexpr size_t kDim = 20;
  const std::unique_ptr<RowOptimizer> optimizer = Make(kDim);
  std::vector<float> gradients(3 * kDim, 0.5f);
  gradients[kDim + 17] = std::nanf("");
  const bool by_row = optimizer->slots().size() == 1 && optimizer->slots()[0].floats == 1;
  TestRows rows(*optimizer, 3, 4);
  rows.missed() = {2, 2, 2};
  for (int64_t step = 5; step < 20; step += 3) rows.Update(gradients, step);
  for (size_t i = 0; i < 3; ++i) {
    for (size_t e = 0; e < kDim; ++e) {
      EXPECT_EQ(std::isnan(rows.row(i)[e]), i == 1 && (by_row || e == 17)) << i << " " << e;
    }
  }
}

TEST_P(RowBitsTest, ReadersSeeWhatAPushStoresAndStoreNothing) {
  for (const size_t dim : {1, 3, 16, 21}) {
    const std::unique_ptr<RowOptimizer> optimizer = Make(dim);
    TestRows rows(*optimizer, 150, 8);
    for (int64_t step = 0; step < 5; ++step) rows.Update(RandomVector(150 * dim, 9u), step);
    for (size_t i = 0; i < 150; ++i) rows.missed()[i] = static_cast<uint32_t>(i % 50 * i % 7);
    const std::vector<uint32_t> before = rows.MemoryBits();
    std::vector<float> read(150 * (dim + 2), TestRows::kGap);
    std::vector<const float*> pointers;
    for (size_t i = 0; i < 150; ++i) pointers.push_back(i == 100 ? nullptr : rows.row(i));
    optimizer->Read({pointers, rows.missed(), 60, kRowRate, read.data(), dim + 2});
    EXPECT_EQ(rows.MemoryBits(), before);
    // A step of rate 0 moves nothing, so that what it stores is what was made up for.
    const std::vector<float> zeros(150 * dim);
    RowBatch batch = rows.Batch(
        {WireFormat::kFloat32, reinterpret_cast<const uint8_t*>(zeros.data()), dim * sizeof(float)},
        60);
    batch.learning_rate = 0;
    optimizer->Update(batch);
    for (size_t i = 0; i < 150; ++i) {
      const float* const at = &read[i * (dim + 2)];
      EXPECT_EQ(at[dim], TestRows::kGap);
      if (i == 100) {
        EXPECT_EQ(at[0], TestRows::kGap);
      } else if (!optimizer->slots().empty() && optimizer->slots()[0].name == "RMSProp") {
        continue;  // its momentum goes on at a rate of 0
      } else {
        EXPECT_EQ(Bits(std::vector<float>(at, at + dim)), Bits(rows.values(i))) << i;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Rules, RowBitsTest,
    testing::Values("sgd {}", "momentum {}", "momentum { nesterov: true }", "adagrad {}",
                    "rmsprop { momentum: 0.5 }", "row_wise_adagrad {} clip_value: 1 l2: 0.125",
                    "adam {}", "adam { exact: true }", "adamw { weight_decay: 0.25 exact: true }",
                    "sgd {} decay", "row_wise_adagrad {} decay", "adamw {} decay",
                    "ftrl { l1: 0.5 l2: 0.1 l2_shrinkage: 0.1 beta: 1 } l2: 0.1"));

}  // namespace
}  // namespace keelson
