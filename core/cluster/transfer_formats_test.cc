#include "core/cluster/transfer_formats.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "gmock/gmock.h"

namespace keelson {
namespace {

using ::testing::ElementsAre;

v1::TransferConfig ParseTransfer(const std::string& text) {
  v1::TransferConfig config;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &config)) << text;
  return config;
}

void ExpectRefused(const v1::TransferConfig& config, const std::string& text) {
  EXPECT_EQ(ValidateTransferConfig(config), absl::InvalidArgumentError(text));
}

TEST(TopKCountTest, FractionIsRoundedUpAndAtLeastOne) {
  EXPECT_EQ(TopKCount(0.01f, 1000), 10);
  EXPECT_EQ(TopKCount(0.01f, 1001), 11);
  EXPECT_EQ(TopKCount(0.001f, 3), 1);
  EXPECT_EQ(TopKCount(1, 262144), 262144);
}

TEST(ResolveTransferFormatsTest, FirstMatchingGroupDecides) {
  const std::vector<VariableSpec> variables = {{"conv/kernel", Shape({5000}), {}},
                                               {"dense/kernel", Shape({5000}), {}},
                                               {"dense/bias", Shape({10}), {}}};
  const auto formats = ResolveTransferFormats(
      ParseTransfer("groups { variables: 'conv/*' push: TOP_K pull: BFLOAT16 top_k_fraction: 0.25 }"
                    "groups { variables: '*/kernel' push: INT8 pull: FLOAT16 }"),
      variables);
  EXPECT_THAT(formats, ElementsAre(VariableFormats{WireFormat::kTopK, WireFormat::kBfloat16, 0.25f},
                                   VariableFormats{WireFormat::kInt8, WireFormat::kFloat16},
                                   VariableFormats{}));
}

TEST(ResolveTransferFormatsTest, SmallVariablesAreNotPushedInFormatsThatLose) {
  const std::vector<VariableSpec> variables = {{"a", Shape({1023}), {}}, {"b", Shape({1024}), {}}};
  const auto push = [&](const std::string& group) {
    std::vector<WireFormat> formats;
    for (const VariableFormats& each : ResolveTransferFormats(
             ParseTransfer("groups { variables: '*' " + group + " }"), variables)) {
      formats.push_back(each.push);
    }
    return formats;
  };
  EXPECT_THAT(push("push: INT8"), ElementsAre(WireFormat::kFloat32, WireFormat::kInt8));
  EXPECT_THAT(push("push: TOP_K"), ElementsAre(WireFormat::kFloat32, WireFormat::kTopK));
  EXPECT_THAT(push("push: INT8 min_elements: 1"),
              ElementsAre(WireFormat::kInt8, WireFormat::kInt8));
  EXPECT_THAT(push("push: BFLOAT16"), ElementsAre(WireFormat::kBfloat16, WireFormat::kBfloat16));
}

std::vector<VariableSpec> WithAverages() {
  return {{"conv/kernel", Shape({5000}), {}},
          {"norm/gamma", Shape({5000}), {}},
          {"norm/moving_mean", Shape({5000}), {}, 0.9f},
          {"norm/moving_variance", Shape({5000}), {}, 0.9f}};
}

TEST(ResolveTransferFormatsTest, AveragesAlwaysTravelAsFloat32) {
  const auto formats = ResolveTransferFormats(
      ParseTransfer("groups { variables: '*' push: TOP_K pull: BFLOAT16 top_k_fraction: 0.25 }"),
      WithAverages());
  const VariableFormats asked{WireFormat::kTopK, WireFormat::kBfloat16, 0.25f};
  EXPECT_THAT(formats, ElementsAre(asked, asked, VariableFormats{}, VariableFormats{}));
}

TEST(CheckTransferGroupsTest, AFormatForAveragesAloneIsRefused) {
  const auto check = [](const std::string& groups) {
    return CheckTransferGroups(ParseTransfer(groups), WithAverages());
  };
  EXPECT_EQ(check("groups { variables: '*/gamma' push: INT8 }"
                  "groups { variables: '*/moving_*' push: INT8 }"),
            absl::InvalidArgumentError(
                "transfer.groups[1]: expected push and pull FLOAT32 for \"*/moving_*\", which "
                "matches moving averages alone, found push INT8, pull FLOAT32"));
  EXPECT_EQ(check("groups { variables: 'norm/moving_mean' pull: FLOAT16 }").code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(check("groups { variables: 'norm/*' push: INT8 pull: FLOAT16 }").ok());
  EXPECT_TRUE(check("groups { variables: '*/moving_*' }").ok()) << "it asks for float32";
  EXPECT_TRUE(check("groups { variables: 'other/*' push: INT8 }").ok()) << "it matches nothing";
}

TEST(ResolveTableFormatsTest, RowsTravelAsTheFirstGroupSays) {
  const std::vector<TableSpec> tables = {{"users", 4, {}}, {"items", 4, {}}, {"tags", 4, {}}};
  EXPECT_THAT(
      ResolveTableFormats(
          ParseTransfer("groups { variables: 'items' push: BFLOAT16 }"
                        "groups { variables: '*s' push: INT8 pull: FLOAT16 min_elements: 9 }"),
          absl::MakeConstSpan(tables)),
      ElementsAre(VariableFormats{WireFormat::kInt8, WireFormat::kFloat16},
                  VariableFormats{WireFormat::kBfloat16, WireFormat::kFloat32},
                  VariableFormats{WireFormat::kInt8, WireFormat::kFloat16}));
  EXPECT_THAT(ResolveTableFormats({}, absl::MakeConstSpan(tables).first(1)),
              ElementsAre(VariableFormats{}));
}

TEST(CheckTransferGroupsTest, TablesHaveNeitherTopKNorTwoStepsUnderWay) {
  const std::vector<TableSpec> tables = {{"users", 4, {}}};
  const auto check = [&](const std::string& text) {
    return CheckTransferGroups(ParseTransfer(text), WithAverages(), tables);
  };
  EXPECT_TRUE(check("groups { variables: '*' push: INT8 } depth: 1").ok());
  EXPECT_TRUE(check("groups { variables: 'users' } groups { variables: '*' push: TOP_K }").ok());
  EXPECT_EQ(
      check("groups { variables: 'a' } groups { variables: '*' push: TOP_K }"),
      absl::InvalidArgumentError(
          "transfer.groups[1].push: expected FLOAT32, FLOAT16, BFLOAT16 or INT8 for the table "
          "\"users\", found TOP_K"));
  EXPECT_EQ(check("depth: 2"),
            absl::InvalidArgumentError(
                "transfer.depth: expected 1 of a model with tables, whose rows a step needs as the "
                "step before has left them, found 2"));
  EXPECT_TRUE(CheckTransferGroups(ParseTransfer("depth: 2"), WithAverages()).ok());
}

TEST(ValidateTransferConfigTest, DefaultsAndWholeConfigurationsPass) {
  EXPECT_TRUE(ValidateTransferConfig({}).ok());
  EXPECT_TRUE(
      ValidateTransferConfig(
          ParseTransfer("groups { variables: '*' push: TOP_K pull: FLOAT16 top_k_fraction: 1 }"
                        "groups { variables: 'x' } depth: 2"))
          .ok());
}

TEST(ValidateTransferConfigTest, ErrorsNameTheField) {
  ExpectRefused(ParseTransfer("groups { push: INT8 }"),
                "transfer.groups[0].variables: expected a pattern such as \"*\" or \"dense_1/*\", "
                "found \"\"");
  ExpectRefused(ParseTransfer("groups { variables: 'a' } groups { variables: '*' pull: INT8 }"),
                "transfer.groups[1].pull: expected FLOAT32, FLOAT16 or BFLOAT16, found INT8");
  ExpectRefused(ParseTransfer("groups { variables: '*' pull: TOP_K }"),
                "transfer.groups[0].pull: expected FLOAT32, FLOAT16 or BFLOAT16, found TOP_K");
  ExpectRefused(ParseTransfer("groups { variables: '*' top_k_fraction: 1.5 }"),
                "transfer.groups[0].top_k_fraction: expected a number in (0, 1], found 1.5");
  ExpectRefused(ParseTransfer("groups { variables: '*' top_k_fraction: nan }"),
                "transfer.groups[0].top_k_fraction: expected a number in (0, 1], found nan");
  ExpectRefused(ParseTransfer("groups { variables: '*' min_elements: -1 }"),
                "transfer.groups[0].min_elements: expected at least 0, found -1");
  ExpectRefused(ParseTransfer("depth: 3"), "transfer.depth: expected 1 or 2, found 3");
  ExpectRefused(ParseTransfer("depth: -1"), "transfer.depth: expected 1 or 2, found -1");
}

TEST(ValidateTransferConfigTest, FormatsThatDoNotExistAreRefused) {
  v1::TransferConfig config = ParseTransfer("groups { variables: '*' }");
  config.mutable_groups(0)->set_push(static_cast<v1::WireFormat>(9));
  ExpectRefused(config,
                "transfer.groups[0].push: expected FLOAT32, FLOAT16, BFLOAT16, INT8 or TOP_K, "
                "found 9");
  config.mutable_groups(0)->set_push(v1::INT8);
  config.mutable_groups(0)->set_pull(static_cast<v1::WireFormat>(-1));
  ExpectRefused(config, "transfer.groups[0].pull: expected FLOAT32, FLOAT16 or BFLOAT16, found -1");
}

}  // namespace
}  // namespace keelson
