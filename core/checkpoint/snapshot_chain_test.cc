#include "core/checkpoint/snapshot_chain.h"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "gtest/gtest.h"

namespace keelson {
namespace {

struct Row {
  uint64_t id;
  uint32_t link;
  int64_t row;
  friend bool operator==(const Row&, const Row&) = default;
};

std::vector<Row> Chain(const std::vector<std::vector<uint64_t>>& ids,
                       const std::vector<std::vector<uint64_t>>& erased) {
  std::vector<ChainedRow> rows;
  for (size_t l = 0; l < ids.size(); ++l) {
    AddLink(static_cast<uint32_t>(l), ids[l], erased[l], &rows);
  }
  std::vector<Row> chain;
  for (const ChainedRow& row : rows) chain.push_back({row.id, row.link, row.row});
  return chain;
}

constexpr uint64_t kLast = ~uint64_t{0};

TEST(SnapshotChainTest, ALinkReplacesAndAddsRows) {
  EXPECT_EQ(Chain({{0, 4, kLast}, {0, 2, 5, kLast}}, {{}, {}}),
            (std::vector<Row>{{0, 1, 0}, {2, 1, 1}, {4, 0, 1}, {5, 1, 2}, {kLast, 1, 3}}));
  EXPECT_EQ(Chain({{}, {3}, {}}, {{}, {}, {}}), (std::vector<Row>{{3, 1, 0}}));
}

TEST(SnapshotChainTest, ErasedIdsAreGoneUnlessTheLinkHasARow) {
  EXPECT_EQ(Chain({{0, 4, 7, kLast}, {4}}, {{}, {0, 1, 1, 4, 4, kLast, kLast}}),
            (std::vector<Row>{{4, 1, 0}, {7, 0, 2}}));
}

TEST(SnapshotChainTest, AnErasedIdMayComeBackLater) {
  EXPECT_EQ(Chain({{1, 2}, {}, {2}}, {{}, {1, 2}, {}}), (std::vector<Row>{{2, 2, 0}}));
}

}  // namespace
}  // namespace keelson
