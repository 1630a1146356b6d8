#include "core/model/item_scores.h"

#include "core/model/model_devices_testing.h"
#include "core/model/model_testing.h"

namespace keelson {
namespace {

class ItemScoresTest : public ModelOnDevicesTest {};

TEST_P(ItemScoresTest, AreProductsOfVectors) {
  constexpr size_t kDim = 3;
  // More queries than are computed at a time.
  std::vector<float> items(5 * kDim), queries(1500 * kDim);
  FillRandom(1, 1, absl::MakeSpan(items));
  FillRandom(2, 1, absl::MakeSpan(queries));
  const auto device = NewDevice();
  const auto scores = ItemScores::Create(device.get(), kDim, items);
  ASSERT_TRUE(scores.ok()) << scores.status();
  for (const size_t num_queries : {1500, 2}) {
    size_t taken = 0;
    const auto status = (*scores)->Score(absl::MakeConstSpan(queries).first(num_queries * kDim),
                                         [&](size_t query, absl::Span<const float> of_query) {
                                           ASSERT_EQ(query, taken++);
                                           ASSERT_EQ(of_query.size(), 5u);
                                           for (size_t item = 0; item < 5; ++item) {
                                             double product = 0;
                                             for (size_t k = 0; k < kDim; ++k) {
                                               product += double{queries[query * kDim + k]} *
                                                          items[item * kDim + k];
                                             }
                                             ASSERT_NEAR(of_query[item], product, 1e-5);
                                           }
                                         });
    ASSERT_TRUE(status.ok()) << status;
    EXPECT_EQ(taken, num_queries);
  }
}

INSTANTIATE_TEST_SUITE_P(On, ItemScoresTest, AllTestDevices(), TestDeviceName);

}  // namespace
}  // namespace keelson
