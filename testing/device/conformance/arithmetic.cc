#include <cmath>
#include <vector>

#include "testing/device/conformance/device_conformance.h"

namespace keelson {
namespace {

// Around vectors, blocks of threads and a thread's share, and large enough for several threads.
constexpr int64_t kSizes[] = {0,  1,   3,   4,   5,   7,   8,   15,   16,   17,   31,   32,
                              33, 127, 128, 129, 255, 256, 257, 1023, 1024, 1025, 20001};

using Combine = void (Device::*)(int64_t, const DeviceMemory&, const DeviceMemory&, DeviceMemory*);

TEST_P(DeviceConformanceTest, AddsAndMultipliesElements) {
  struct Case {
    Combine operation;
    reference::Doubles (*expected)(const reference::Floats&, const reference::Floats&);
  };
  for (const auto& [operation, expected] :
       {Case{&Device::Add, &reference::Add}, Case{&Device::Multiply, &reference::Multiply}}) {
    for (int64_t n : kSizes) {
      SCOPED_TRACE(testing::Message() << (operation == &Device::Add ? "Add " : "Multiply ") << n);
      const Floats a = Random(n, 21), b = Random(n, 22);
      const Output y = Garbage(n), onto_a = InOut(a), onto_b = InOut(b), onto_both = InOut(a);
      (*device_.*operation)(n, *Input(a), *Input(b), y.get());
      ExpectNear(y, expected(a, b), 1e-7);
      (*device_.*operation)(n, *onto_a, *Input(b), onto_a.get());
      (*device_.*operation)(n, *Input(a), *onto_b, onto_b.get());
      (*device_.*operation)(n, *onto_both, *onto_both, onto_both.get());
      EXPECT_EQ(Read(onto_a), Read(y));
      EXPECT_EQ(Read(onto_b), Read(y));
      ExpectNear(onto_both, expected(a, a), 1e-7);
    }
  }
}

TEST_P(DeviceConformanceTest, SumsAndProductsOfLargeArrays) {
  constexpr int64_t kElements = 1'000'003;
  Floats a(kElements);
  for (int64_t i = 0; i < kElements; ++i) a[i] = static_cast<float>(i % 1000);
  const Memory in = Input(a), halves = Input(Floats(kElements, 0.5f));
  const Output sum = Garbage(kElements), product = Garbage(kElements);
  device_->Add(kElements, *in, *halves, sum.get());
  device_->Multiply(kElements, *in, *halves, product.get());
  const Floats sums = Read(sum), products = Read(product);
  for (int64_t i = 0; i < kElements; ++i) {
    ASSERT_EQ(sums[i], a[i] + 0.5f) << i;
    ASSERT_EQ(products[i], a[i] * 0.5f) << i;
  }
}

TEST_P(DeviceConformanceTest, SumsAndProductsKeepNotANumberVisible) {
  const Memory numbers = Input({1, 0, 2, 0, 3}), others = Input({1, kNan, 1, 1, kNan});
  for (Combine operation : {&Device::Add, &Device::Multiply}) {
    const Output left = Garbage(5), right = Garbage(5);
    (*device_.*operation)(5, *numbers, *others, left.get());
    (*device_.*operation)(5, *others, *numbers, right.get());
    for (const Floats& values : {Read(left), Read(right)}) {
      for (size_t i = 0; i < 5; ++i) EXPECT_EQ(std::isnan(values[i]), i == 1 || i == 4) << i;
    }
  }
}

// Extents of CopyColumns.
struct Block {
  int64_t rows, columns, from_columns, from_begin, to_columns, to_begin;
};

TEST_P(DeviceConformanceTest, CopiesColumns) {
  for (const Block& b : std::vector<Block>{{0, 3, 3, 0, 4, 1},
                                           {3, 0, 4, 2, 4, 1},
                                           {1, 1, 1, 0, 1, 0},
                                           {4, 1, 3, 2, 1, 0},
                                           {4, 1, 1, 0, 3, 1},
                                           {33, 4, 8, 4, 12, 8},
                                           {33, 4, 9, 4, 12, 8},
                                           {33, 5, 8, 3, 12, 4},
                                           {7, 32, 64, 32, 96, 0},
                                           {7, 31, 33, 1, 65, 2},
                                           {257, 33, 40, 7, 33, 0},
                                           {300, 2, 7, 5, 9, 3},
                                           {2, 1025, 1030, 4, 1028, 1},
                                           {1025, 3, 3, 0, 3, 0},
                                           {64, 128, 128, 0, 128, 0},
                                           {1000, 140, 150, 10, 140, 0}}) {
    SCOPED_TRACE(testing::Message()
                 << b.rows << "x" << b.columns << " of " << b.from_columns << " from "
                 << b.from_begin << " into " << b.to_columns << " at " << b.to_begin);
    const Floats from = Random(b.rows * b.from_columns, 23);
    const Floats before = Random(b.rows * b.to_columns, 24);
    const Output to = InOut(before);
    device_->CopyColumns(b.rows, b.columns, *Input(from), b.from_columns, b.from_begin, to.get(),
                         b.to_columns, b.to_begin);
    ExpectNear(to,
               reference::CopyColumns(b.rows, b.columns, from, b.from_columns, b.from_begin, before,
                                      b.to_columns, b.to_begin),
               0);
  }
}

TEST_P(DeviceConformanceTest, SlicesOfAConcatenationAreItsParts) {
  const int64_t rows = 19, left = 5, right = 12, both = left + right;
  const Floats a = Random(rows * left, 25), b = Random(rows * right, 26);
  const Output whole = Garbage(rows * both), first = Garbage(rows * left),
               second = Garbage(rows * right);
  device_->CopyColumns(rows, left, *Input(a), left, 0, whole.get(), both, 0);
  device_->CopyColumns(rows, right, *Input(b), right, 0, whole.get(), both, left);
  device_->CopyColumns(rows, left, *whole, both, 0, first.get(), left, 0);
  device_->CopyColumns(rows, right, *whole, both, left, second.get(), right, 0);
  EXPECT_EQ(Read(first), a);
  EXPECT_EQ(Read(second), b);
}

TEST_P(DeviceConformanceTest, RepeatsArithmetic) {
  const int64_t rows = 33, columns = 10, n = rows * columns;
  const Memory x = Allocate(n), sum = Allocate(n), product = Allocate(n);
  const Output wide = InOut(Floats(2 * n, 0.0f));
  for (uint64_t i = 0; i < 4; ++i) {
    SCOPED_TRACE(i);
    const Floats values = Random(n, 30 + i);
    device_->CopyToDevice(values, x.get());
    device_->Repeat(11, [&] {
      device_->Add(n, *x, *x, sum.get());
      device_->Multiply(n, *x, *sum, product.get());
      device_->CopyColumns(rows, columns, *sum, columns, 0, wide.get(), 2 * columns, 0);
      device_->CopyColumns(rows, columns, *product, columns, 0, wide.get(), 2 * columns, columns);
    });
    const Floats found = Read(wide);
    for (int64_t k = 0; k < n; ++k) {
      const float* row = found.data() + k / columns * 2 * columns + k % columns;
      ASSERT_EQ(row[0], 2 * values[k]) << k;
      ASSERT_EQ(row[columns], 2 * values[k] * values[k]) << k;
    }
  }
}

}  // namespace
}  // namespace keelson
