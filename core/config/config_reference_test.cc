#include "core/config/config_reference.h"

#include <gmock/gmock.h>

namespace keelson {
namespace {

using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

class ConfigReferenceTest : public testing::Test {
 protected:
  std::string Explain(absl::string_view path) {
    const auto text = reference_->Explain(path);
    EXPECT_TRUE(text.ok()) << text.status();
    return text.ok() ? *text : "";
  }
  std::string Refusal(absl::string_view path) {
    const auto text = reference_->Explain(path);
    EXPECT_EQ(text.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(text.status().message());
  }

  const absl::StatusOr<ConfigReference> reference_ = ConfigReference::Open(ConfigDescriptors());
};

TEST_F(ConfigReferenceTest, ExplainsAMessageWithItsFields) {
  EXPECT_EQ(Explain("model.layers.conv2d"),
            "model.layers.conv2d: Conv2D {...}\n"
            "  Cross-correlation of [height, width, channels] with W [kernel, kernel, channels, "
            "filters].\n"
            "\n"
            "  filters: integer\n"
            "\n"
            "  kernel_size: integer\n"
            "\n"
            "  stride: integer\n"
            "      default 1\n"
            "\n"
            "  padding: VALID or SAME\n"
            "      default VALID\n"
            "\n"
            "  no_bias: true or false\n"
            "\n"
            "  kernel_initializer: GLOROT_UNIFORM, HE_NORMAL or ZEROS\n"
            "      default GLOROT_UNIFORM\n");
}

TEST_F(ConfigReferenceTest, ExplainsAField) {
  EXPECT_EQ(Explain("model.layers.dropout.rate"),
            "model.layers.dropout.rate: number\n"
            "  Probability that an input is zeroed in training, in [0, 1).\n");
}

TEST_F(ConfigReferenceTest, ExplainsTheValuesOfAnEnum) {
  const std::string text = Explain("model.layers.embedding_bag.combiner");
  EXPECT_THAT(text, StartsWith("model.layers.embedding_bag.combiner: SUM, MEAN or SQRTN\n"
                               "  default MEAN\n"));
  EXPECT_THAT(text, HasSubstr("\n  SUM: 1\n"));
  EXPECT_THAT(text, Not(HasSubstr("UNSPECIFIED")));
}

TEST_F(ConfigReferenceTest, TellsAlternativesFromOtherFields) {
  const std::string text = Explain("model.layers");
  const size_t choice = text.find("  One of these:\n\n  dense: Dense {...}\n");
  const size_t rest = text.find("  Also:\n\n  inputs: list of text\n");
  EXPECT_LT(choice, rest);
  EXPECT_NE(rest, std::string::npos);
  EXPECT_LT(text.find("  name: text\n"), choice);
}

TEST_F(ConfigReferenceTest, UnderstandsThePathsOfErrors) {
  EXPECT_EQ(Explain("model.layers[3].dropout.rate"), Explain("model.layers.dropout.rate"));
}

TEST_F(ConfigReferenceTest, SaysWhatALayerComputes) {
  EXPECT_EQ(reference_->LayerText("dense"), "y = x W + b; W is [inputs, units].");
  EXPECT_EQ(reference_->LayerText("nothing"), "");
}

TEST_F(ConfigReferenceTest, WithoutAPathExplainsTheWhole) {
  const std::string text = Explain("");
  for (const char* field : {"model", "optimizer", "train", "data"}) {
    EXPECT_THAT(text, HasSubstr(std::string("\n  ") + field + ": "));
  }
}

TEST_F(ConfigReferenceTest, RefusesWhatIsNoField) {
  EXPECT_EQ(Refusal("model.layers.dropout.rte"),
            "model.layers.dropout: expected a field (rate), found \"rte\"");
  EXPECT_THAT(Refusal("modle"), StartsWith("configuration: expected a field ("));
  EXPECT_EQ(Refusal("model.layers.flatten.x"),
            "model.layers.flatten: expected no field, found \"x\"");
  EXPECT_EQ(Refusal("model.layers.dropout.rate.x"),
            "model.layers.dropout.rate: expected no field of number, found \"x\"");
  EXPECT_EQ(Refusal("model..layers"), Refusal("model."));
}

TEST(ConfigReferenceOpenTest, RefusesOtherDescriptions) {
  for (const absl::string_view bytes : {"", "\xff"}) {
    EXPECT_EQ(ConfigReference::Open(bytes).status().code(), absl::StatusCode::kInternal);
  }
}

}  // namespace
}  // namespace keelson
