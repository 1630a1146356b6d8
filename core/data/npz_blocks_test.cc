#include "core/data/npz_blocks.h"

#include "absl/strings/str_cat.h"
#include "core/base/fresh_directory_testing.h"
#include "core/data/open_datasets.h"
#include "core/tensor_files/npz.h"
#include "core/tensor_files/tensor_source_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

const FeatureSpec kAge = {"age", Shape({1})};
const FeatureSpec kPixels = {"pixels", Shape({2})};
const FeatureSpec kSeen = {"seen", {}, FeatureKind::kBag, false, 100};
const LabelSpec kBought = {"bought", 2};

class NpzBlocksTest : public testing::Test {
 protected:
  NpzBlocksTest() {
    tensors_.AddValues<float>("age", BundleDtype::kFloat32, Shape({3}), {1.5f, 2, -1});
    tensors_.AddValues<uint8_t>("pixels", BundleDtype::kUint8, Shape({3, 2}), {0, 1, 2, 3, 4, 255});
    tensors_.AddValues<int64_t>("seen", BundleDtype::kInt64, Shape({4}), {7, 8, 9, 99});
    tensors_.AddValues<uint8_t>("bought", BundleDtype::kBool, Shape({3}), {1, 0, 1});
  }

  void AddOffsets(const std::vector<int32_t>& offsets) {
    const auto size = static_cast<int64_t>(offsets.size());
    tensors_.AddValues<int32_t>("seen_offsets", BundleDtype::kInt32, Shape({size}), offsets);
  }
  absl::StatusOr<Datasets> Open(std::vector<FeatureSpec> features,
                                std::vector<LabelSpec> labels = {kBought},
                                const std::string& more = "") {
    EXPECT_TRUE(WriteNpz(path_, tensors_.List(), &tensors_).ok());
    v1::DataConfig config;
    EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
        absl::StrCat("data_dir: '", directory_, "' npz {} train_files: '*' eval_files: '*'", more,
                     "features { name: 'seen' columns { integer {} } }"),
        &config));
    if (std::none_of(features.begin(), features.end(),
                     [](const FeatureSpec& feature) { return feature.name == "seen"; })) {
      config.clear_features();
    }
    return OpenDatasets(config, {std::move(features), std::move(labels)}, 1);
  }
  Batch Records(std::vector<FeatureSpec> features, const std::vector<int64_t>& records,
                std::vector<LabelSpec> labels = {kBought}) {
    const auto data = Open(std::move(features), std::move(labels));
    EXPECT_TRUE(data.ok()) << data.status();
    Batch batch;
    const absl::Status status = data.ok() ? data->train->Read(records, &batch) : data.status();
    EXPECT_TRUE(status.ok()) << status;
    return batch;
  }
  // Without the path in front.
  std::string ErrorOf(std::vector<FeatureSpec> features,
                      std::vector<LabelSpec> labels = {kBought}) {
    const auto data = Open(std::move(features), std::move(labels));
    if (data.ok()) return "opened";
    const std::string text(data.status().message());
    EXPECT_EQ(text.find(path_), 0u) << text;
    return text.substr(path_.size());
  }

  const std::string directory_ = FreshDirectory();
  const std::string path_ = directory_ + "/a.npz";
  MemoryTensors tensors_;
};

TEST_F(NpzBlocksTest, ArraysAreColumns) {
  const Batch batch = Records({kPixels, kAge}, {2, 0});
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(4, 255, 0, 1));
  EXPECT_THAT(batch.features[1].numbers.span(), ElementsAre(-1, 1.5));
  EXPECT_THAT(batch.labels[0].span(), ElementsAre(1, 1));
}

TEST_F(NpzBlocksTest, OffsetsWithAndWithoutTheEnd) {
  for (const std::vector<int32_t>& offsets : {std::vector<int32_t>{0, 1, 1}, {0, 1, 1, 4}}) {
    AddOffsets(offsets);
    const Batch batch = Records({kSeen}, {0, 1, 2});
    EXPECT_THAT(batch.features[0].ids, ElementsAre(7, 8, 9, 99));
    EXPECT_THAT(batch.features[0].offsets, ElementsAre(0, 1, 1, 4));
  }
  // Without another column it is the end where it is the number of values.
  EXPECT_THAT(Records({kSeen}, {0, 1, 2}, {}).features[0].offsets, ElementsAre(0, 1, 1, 4));
  AddOffsets({0, 1, 1});
  EXPECT_THAT(Records({kSeen}, {2, 1}, {}).features[0].ids, ElementsAre(8, 9, 99));
}

TEST_F(NpzBlocksTest, IdsOf64Bits) {
  tensors_.AddValues<uint64_t>("seen", BundleDtype::kUint64, Shape({3}), {1, ~uint64_t{0}, 3});
  EXPECT_THAT(Records({{"seen", {}, FeatureKind::kId}}, {1}).features[0].ids,
              ElementsAre(~uint64_t{0}));
}

TEST_F(NpzBlocksTest, ArraysThatDoNotGoTogether) {
  EXPECT_EQ(ErrorOf({{"size", Shape({1})}}),
            ": expected a column \"size\" (the feature \"size\"), found age, bought, pixels, seen");
  EXPECT_EQ(ErrorOf({kSeen}), ": array \"bought\": expected 4 records, as \"seen\" has, found 3");
  tensors_.AddValues<float>("age", BundleDtype::kFloat32, Shape({}), {1});
  EXPECT_EQ(ErrorOf({kAge}),
            ": array \"age\": expected numbers of each record, [n] or [n, k], found a single "
            "number");
  tensors_.AddValues<float>("age", BundleDtype::kComplex64, Shape({3}), {1, 2, 3, 4, 5, 6});
  EXPECT_EQ(ErrorOf({kAge}), ": array \"age\": expected numbers, found complex64");
  tensors_.AddValues<float>("age", BundleDtype::kFloat32, Shape({3, 0}), {});
  EXPECT_EQ(ErrorOf({kAge}), ": array \"age\": expected numbers of each record, found [3, 0]");
}

TEST_F(NpzBlocksTest, OffsetsThatAreNone) {
  const auto error_of = [&](const std::vector<int32_t>& offsets) {
    AddOffsets(offsets);
    return ErrorOf({kSeen});
  };
  constexpr char kOffsets[] = ": array \"seen_offsets\": expected ";
  EXPECT_EQ(error_of({0, 1}), absl::StrCat(kOffsets, "3 or 4, of so many records, found 2"));
  EXPECT_EQ(error_of({1, 1, 1}), absl::StrCat(kOffsets, "0 as number 0, found 1"));
  EXPECT_EQ(error_of({0, 3, 2}), absl::StrCat(kOffsets, "3 to 4 as number 2, found 2"));
  EXPECT_EQ(error_of({0, 5, 5}), absl::StrCat(kOffsets, "0 to 4 as number 1, found 5"));
  EXPECT_EQ(error_of({0, 1, 2, 3}),
            absl::StrCat(kOffsets, "4, the number of values, as the last, found 3"));
  EXPECT_EQ(error_of({}), absl::StrCat(kOffsets, "one whole number or more, [n], found int32 [0]"));
  AddOffsets({0, 1, 2});
  tensors_.AddValues<float>("seen_offsets", BundleDtype::kFloat32, Shape({3}), {0, 1, 2});
  EXPECT_EQ(ErrorOf({kSeen}),
            absl::StrCat(kOffsets, "one whole number or more, [n], found float32 [3]"));
  AddOffsets({0, 1, 2});
  tensors_.AddValues<int64_t>("seen", BundleDtype::kInt64, Shape({2, 2}), {7, 8, 9, 99});
  EXPECT_EQ(ErrorOf({kSeen}),
            ": array \"seen\": expected all values one after the other, [m], as "
            "\"seen_offsets\" is there, found [2, 2]");
}

TEST_F(NpzBlocksTest, ListsColumns) {
  AddOffsets({0, 1, 2});
  tensors_.AddValues<float>("single", BundleDtype::kFloat32, Shape({}), {1});
  tensors_.AddValues<float>("complex", BundleDtype::kComplex64, Shape({1}), {1, 2});
  ASSERT_TRUE(WriteNpz(path_, tensors_.List(), &tensors_).ok());
  const auto columns = ListNpzColumns(path_);
  ASSERT_TRUE(columns.ok()) << columns.status();
  std::vector<std::string> texts;
  for (const FileColumn& column : *columns) {
    texts.push_back(absl::StrCat(column.name, ": ", column.unreadable));
  }
  EXPECT_THAT(texts, ElementsAre("age: ", "bought: ", "complex: complex64",
                                 "pixels: ", "seen: ", "single: a single number"));
  EXPECT_EQ(ListNpzColumns(path_ + "x").status().code(), absl::StatusCode::kNotFound);
}

TEST_F(NpzBlocksTest, RecordsThatAreNone) {
  tensors_.AddValues<int32_t>("bought", BundleDtype::kInt32, Shape({3}), {1, 2, 0});
  const auto data = Open({kAge});
  ASSERT_TRUE(data.ok()) << data.status();
  Batch batch;
  EXPECT_EQ(data->train->Read({0, 1}, &batch).message(),
            absl::StrCat(path_,
                         ": record 2: expected 0 or 1 as the label in the column \"bought\", "
                         "found 2"));
  const auto others = Open({kAge}, {kBought}, "max_bad_records: 1 ");
  ASSERT_TRUE(others.ok()) << others.status();
  EXPECT_EQ(others->train->num_records(), 2);
  ASSERT_TRUE(others->train->Read({1, 0}, &batch).ok());
  EXPECT_THAT(batch.features[0].numbers.span(), ElementsAre(-1, 1.5));
}

}  // namespace
}  // namespace keelson
