// stats and inspect of npz files.

#include <sstream>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "cli/data/data_commands.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class BlockSummaryTest : public testing::Test {
 protected:
  BlockSummaryTest() {
    tensors_.AddValues<float>("age", BundleDtype::kFloat32, Shape({3}), {1.5f, 2, 4});
    tensors_.AddValues<int64_t>("seen", BundleDtype::kInt64, Shape({4}), {7, 8, 7, 7});
    tensors_.AddValues<int32_t>("seen_offsets", BundleDtype::kInt32, Shape({3}), {0, 2, 4});
    tensors_.AddValues<uint8_t>("bought", BundleDtype::kBool, Shape({3}), {1, 0, 1});
    tensors_.AddValues<float>("version", BundleDtype::kFloat32, Shape({}), {1});
    tensors_.AddValues<float>("phases", BundleDtype::kComplex64, Shape({3}), {1, 2, 3, 4, 5, 6});
  }

  std::string Statistics(int64_t rows = 0, const std::string& format = "") {
    EXPECT_TRUE(WriteNpz(path_, tensors_.List(), &tensors_).ok());
    std::ostringstream out;
    const absl::Status status = PrintStatistics({path_, format}, rows, FileSystem::Real(), &out);
    return status.ok() ? out.str() : std::string(status.message());
  }
  absl::StatusOr<v1::TrainConfig> Propose() {
    EXPECT_TRUE(WriteNpz(path_, tensors_.List(), &tensors_).ok());
    ProposalOptions options;
    options.file.path = path_;
    options.label = "bought";
    ASSIGN_OR_RETURN(v1::TrainConfig config, ProposeConfig(options, FileSystem::Real()));
    RETURN_IF_ERROR(FinalizeTrainConfig(&config));
    return config;
  }

  const std::string path_ = JoinPath(FreshDirectory(), "a.npz");
  MemoryTensors tensors_;
};

TEST_F(BlockSummaryTest, StatisticsOfNpz) {
  EXPECT_EQ(
      Statistics(),
      absl::StrCat(
          "3 rows of ", path_, "\n",
          "column   kind                       missing  distinct  min  median  max  mean      "
          "most frequent\n"
          "age      number                     0.0 %    3         1.5  2       4    2.5       "
          "1.5 (33.3 %), 2 (33.3 %), 4 (33.3 %)\n"
          "bought   whole                      0.0 %    2         0    1       1    0.666667  "
          "1 (66.7 %), 0 (33.3 %)\n"
          "seen     list of whole              33.3 %   2         7    7       8    7.25      "
          "7 (75.0 %), 8 (25.0 %)\n"
          "phases   not read: complex64        -        -         -    -       -    -\n"
          "version  not read: a single number  -        -         -    -       -    -\n"));
  EXPECT_THAT(Statistics(2), HasSubstr("2 rows of"));
  EXPECT_THAT(Statistics(2, "npz"), HasSubstr("2 rows of"));
  EXPECT_THAT(Statistics(2, "csv"), HasSubstr("expected CSV or TFRecord, found an archive"));
}

TEST_F(BlockSummaryTest, AProposalForNpz) {
  tensors_.AddValues<float>("vector", BundleDtype::kFloat32, Shape({3, 2}), {1, 2, 3, 4, 5, 6});
  tensors_.AddValues<float>("flag", BundleDtype::kFloat32, Shape({3}), {1, 0, 1});
  const auto config = Propose();
  ASSERT_TRUE(config.ok()) << config.status();
  EXPECT_TRUE(config->data().has_npz());
  EXPECT_THAT(config->data().train_files(), ElementsAre("a.npz"));
  ASSERT_EQ(config->model().features_size(), 2);
  EXPECT_EQ(config->model().features(0).name(), "seen");
  EXPECT_TRUE(config->model().features(0).has_bag());
  // Floats are numbers, however few there are.
  ASSERT_EQ(config->data().features_size(), 1);
  EXPECT_THAT(config->model().features(1).dense().shape(), ElementsAre(4));
  EXPECT_EQ(config->data().features(0).columns(2).column(), "vector");
  EXPECT_EQ(config->data().features(0).columns(2).number().size(), 2);
  EXPECT_FLOAT_EQ(config->data().features(0).columns(2).number().mean(), 3.5);
}

TEST_F(BlockSummaryTest, LabelsThatAreFloats) {
  const auto label = [&](const std::vector<float>& values) {
    tensors_.AddValues<float>("bought", BundleDtype::kFloat32, Shape({3}), values);
    const auto config = Propose();
    EXPECT_TRUE(config.ok()) << config.status();
    return *config;
  };
  EXPECT_EQ(label({0, 1, 1}).data().labels_size(), 0);
  const v1::TrainConfig signs = label({-1, 1, 1});
  EXPECT_EQ(signs.model().loss().kind(), v1::LossConfig::SIGMOID_CROSS_ENTROPY);
  EXPECT_EQ(signs.data().labels(0).at_least(), 1);
  EXPECT_EQ(label({0.5, 1, 2}).model().loss().kind(), v1::LossConfig::MEAN_SQUARED_ERROR);
}

TEST_F(BlockSummaryTest, ListsOfFractionsOfAnyLengthAreLeftOut) {
  tensors_.AddValues<float>("seen", BundleDtype::kFloat32, Shape({4}), {0.5, 1, 2, 3});
  tensors_.AddValues<int32_t>("seen_offsets", BundleDtype::kInt32, Shape({3}), {0, 1, 4});
  const auto config = Propose();
  ASSERT_TRUE(config.ok()) << config.status();
  ASSERT_EQ(config->model().features_size(), 1);
  EXPECT_THAT(config->model().features(0).dense().shape(), ElementsAre(1));
}

TEST_F(BlockSummaryTest, FilesThatCannotBeRead) {
  tensors_.AddValues<float>("age", BundleDtype::kFloat32, Shape({2}), {1.5f, 2});
  EXPECT_EQ(Statistics(),
            absl::StrCat(path_, ": array \"bought\": expected 2 records, as \"age\" has, found 3"));
  tensors_ = MemoryTensors();
  tensors_.AddValues<float>("version", BundleDtype::kFloat32, Shape({}), {1});
  EXPECT_EQ(Statistics(),
            absl::StrCat(path_, ": expected a column that a model can take, found none"));
  ASSERT_TRUE(WriteFileAtomically(path_, "PK\x03\x04 and nothing more").ok());
  std::ostringstream out;
  const absl::Status status = PrintStatistics({path_}, 0, FileSystem::Real(), &out);
  EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss);
  EXPECT_THAT(std::string(status.message()), HasSubstr(path_));
}

}  // namespace
}  // namespace keelson
