#include <cmath>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "testing/device/conformance/device_conformance.h"
#include "testing/device/sparse_testing.h"

namespace keelson {
namespace {

using reference::SparseMatrix;

using Memory = std::unique_ptr<DeviceMemory>;

// A matrix's memories on a device, with room for more rows and entries than the matrix may have.
class SparseOperand {
 public:
  SparseOperand(int64_t capacity, int64_t entries, Device* device)
      : device_(device), capacity_(capacity), entries_(entries) {}
  SparseOperand(const SparseMatrix& a, Device* device)
      : SparseOperand(static_cast<int64_t>(a.rows.size()) + 3,
                      static_cast<int64_t>(a.columns.size()) + 5, device) {
    Set(a);
  }

  void Set(const SparseMatrix& a) {
    device_->CopyIntegersToDevice({static_cast<int32_t>(a.rows.size())}, stored_.get());
    device_->CopyIntegersToDevice(a.rows, rows_.get());
    device_->CopyIntegersToDevice(a.offsets, offsets_.get());
    device_->CopyIntegersToDevice(a.columns, columns_.get());
    device_->CopyToDevice(a.coefficients, coefficients_.get());
  }

  SparseRows get() const {
    return {capacity_,      stored_.get(),  rows_.get(),
            offsets_.get(), columns_.get(), coefficients_.get()};
  }

 private:
  Device* const device_;
  const int64_t capacity_;
  const int64_t entries_;
  const Memory stored_ = *device_->Allocate(1), rows_ = *device_->Allocate(capacity_),
               offsets_ = *device_->Allocate(capacity_ + 1),
               columns_ = *device_->Allocate(entries_),
               coefficients_ = *device_->Allocate(entries_);
};

// A matrix of `columns` columns, and the width of what it is multiplied by.
struct Product {
  SparseMatrix a;
  int64_t columns;
  int64_t width;
};

// Widths around vectors, warps and blocks of threads.
std::vector<Product> Products() {
  std::vector<Product> products;
  for (int64_t width : {1,  2,  3,  4,  5,  7,  8,  9,   12,  15,  16,  17,
                        24, 31, 32, 33, 63, 64, 65, 127, 128, 129, 300, 1024}) {
    for (int64_t stored : {0, 1, 2, 13}) {
      products.push_back(
          {RandomSparseMatrix(stored, 29, 12, static_cast<uint64_t>(width)), 29, width});
    }
  }
  // Enough for several threads.
  for (int64_t width : {1, 10, 32}) {
    products.push_back({RandomSparseMatrix(2000, 500, 30, 7), 500, width});
  }
  // As an embedding's table receives its gradient.
  const SparseMatrix a = RandomSparseMatrix(60, 40, 20, 8);
  for (int64_t width : {1, 16, 33}) products.push_back({Transposed(a), a.rows.back() + 1, width});
  return products;
}

TEST_P(DeviceConformanceTest, MultipliesRowsOfFewEntries) {
  for (const auto& [a, columns, width] : Products()) {
    SCOPED_TRACE(testing::Message() << a.rows.size() << " rows, width " << width);
    const int64_t y_rows = a.rows.empty() ? 2 : a.rows.back() + 3;
    const Floats x = Random(columns * width, 90), before = Random(y_rows * width, 91);
    const SparseOperand operand(a, device_.get());
    for (const float beta : {0.0f, 1.0f, -0.5f}) {
      SCOPED_TRACE(beta);
      const Output y = InOut(before);
      device_->MultiplySparse(operand.get(), width, *Input(x), beta, y.get());
      ExpectNear(y, reference::MultiplySparse(a, width, x, beta, before), 1e-5);
    }
  }
}

TEST_P(DeviceConformanceTest, ASparseProductOfNoColumnsWritesNothing) {
  const SparseOperand a(RandomSparseMatrix(3, 5, 4, 9), device_.get());
  const Output y = InOut({1, 2});
  device_->MultiplySparse(a.get(), 0, *Input({}), 0, y.get());
  EXPECT_EQ(Read(y), Floats({1, 2}));
}

// The sum of these floats depends on their order.
TEST_P(DeviceConformanceTest, SparseProductsAddEntriesInTheirOrder) {
  SparseMatrix a;
  a.rows = {0};
  constexpr int32_t kEntries = 70;
  Floats x;
  for (int32_t i = 0; i < kEntries; ++i) {
    a.columns.push_back(i);
    a.coefficients.push_back(1);
    x.push_back(i % 7 == 6 ? -1e8f : (i % 7 == 1 ? 1e8f : 1.25f * static_cast<float>(i)));
  }
  a.offsets = {0, kEntries};
  float expected = 0;
  for (float value : x) expected += value;
  const SparseOperand operand(a, device_.get());
  for (int64_t width : {1, 4, 17, 130}) {
    SCOPED_TRACE(width);
    Floats wide;
    for (float value : x) wide.insert(wide.end(), width, value);
    const Output y = Garbage(width);
    device_->MultiplySparse(operand.get(), width, *Input(wide), 0, y.get());
    EXPECT_EQ(Read(y), Floats(width, expected));
  }
}

TEST_P(DeviceConformanceTest, SparseProductsWithBetaAddAsAxpyDoes) {
  const SparseMatrix a = RandomSparseMatrix(13, 29, 12, 5);
  const SparseOperand operand(a, device_.get());
  for (int64_t width : {1, 3, 10, 16, 33}) {
    SCOPED_TRACE(width);
    const int64_t n = (a.rows.back() + 1) * width;
    const Memory x = Input(Random(29 * width, 95));
    const Output y = InOut(Random(n, 96)), added = InOut(Random(n, 96)), sum = InOut(Floats(n, 0));
    device_->MultiplySparse(operand.get(), width, *x, 1, y.get());
    device_->MultiplySparse(operand.get(), width, *x, 0, sum.get());
    device_->Axpy(1, n, *sum.get(), added.get());
    EXPECT_EQ(Read(y), Read(added));
  }
}

TEST_P(DeviceConformanceTest, SparseProductsKeepNotANumberInItsRowAndColumn) {
  SparseMatrix a;
  a.rows = {0, 1, 2};
  a.offsets = {0, 2, 3, 4};
  a.columns = {0, 1, 1, 0};
  a.coefficients = {1, 1, 1, kNan};
  const Output y = Garbage(9);
  const SparseOperand operand(a, device_.get());
  device_->MultiplySparse(operand.get(), 3, *Input({kNan, 1, 2, 3, 4, 5}), 0, y.get());
  ExpectNear(y, {kNan, 5, 7, 3, 4, 5, kNan, kNan, kNan}, 0);
}

TEST_P(DeviceConformanceTest, ARepeatedSparseProductFollowsCountsAndEntries) {
  constexpr int64_t kColumns = 30, kWidth = 20, kRows = 40;
  SparseOperand operand(kRows, 2000, device_.get());
  const Memory x = Input(Random(kColumns * kWidth, 92));
  const Output y = InOut(Floats(2 * kRows * kWidth, 0.5f));
  const Output direct = InOut(Floats(2 * kRows * kWidth, 0.5f));
  for (uint64_t i = 0; i < 6; ++i) {
    SCOPED_TRACE(i);
    const int64_t stored = i == 3 ? 0 : kRows - 7 * static_cast<int64_t>(i);
    const SparseMatrix a = RandomSparseMatrix(stored, kColumns, 25, 10 + i);
    operand.Set(a);
    const Floats before = Read(direct);
    device_->MultiplySparse(operand.get(), kWidth, *x, 1, direct.get());
    device_->Repeat(16, [&] { device_->MultiplySparse(operand.get(), kWidth, *x, 1, y.get()); });
    EXPECT_EQ(Read(y), Read(direct));
    ExpectNear(y, reference::MultiplySparse(a, kWidth, Random(kColumns * kWidth, 92), 1, before),
               1e-5);
  }
}

TEST_P(DeviceConformanceTest, ASparseProductChecksItsOperands) {
  constexpr int64_t kCapacity = 6;
  struct Case {
    const DeviceMemory* SparseRows::*array;
    int64_t size;
    const char* message;
  };
  for (const Case& c :
       {Case{&SparseRows::stored, 0, "MultiplySparse: expected memory of 1 floats, found 0"},
        Case{&SparseRows::rows, 5, "MultiplySparse: expected memory of 6 floats, found 5"},
        Case{&SparseRows::offsets, 6, "MultiplySparse: expected memory of 7 floats, found 6"}}) {
    SCOPED_TRACE(c.message);
    const auto device = *GetParam().create(0);
    const SparseOperand operand(kCapacity, 4, device.get());
    const Memory small = *device->Allocate(c.size), x = *device->Allocate(10);
    const Memory y = *device->Allocate(10);
    SparseRows a = operand.get();
    a.*c.array = small.get();
    device->MultiplySparse(a, 2, *x, 0, y.get());
    const absl::Status status = device->Synchronize();
    EXPECT_EQ(status.code(), absl::StatusCode::kInternal);
    EXPECT_THAT(std::string(status.message()), testing::HasSubstr(c.message));
  }
}

}  // namespace
}  // namespace keelson
