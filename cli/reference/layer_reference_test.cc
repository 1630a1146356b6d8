#include "cli/reference/layer_reference.h"

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "keelson/v1/train_config.pb.h"

namespace keelson {
namespace {

using testing::HasSubstr;

std::string Reference() {
  const auto descriptors = ConfigReference::Open(ConfigDescriptors());
  EXPECT_TRUE(descriptors.ok()) << descriptors.status();
  if (!descriptors.ok()) return "";
  const auto text = LayerReference(*descriptors);
  EXPECT_TRUE(text.ok()) << text.status();
  return text.ok() ? *text : "";
}

TEST(LayerReferenceTest, TheDocumentedOneIsThatOfTheCode) {
  const char* const source = std::getenv("KEELSON_SOURCE_DIR");
  ASSERT_NE(source, nullptr);
  std::ifstream file(std::string(source) + "/docs/layers.md");
  std::stringstream documented;
  documented << file.rdbuf();
  EXPECT_EQ(documented.str(), Reference())
      << "keelson_ctl explain --layers > docs/layers.md writes it";
}

TEST(LayerReferenceTest, EachKindHasItsRow) {
  const std::string reference = Reference();
  const auto* const kinds = v1::LayerConfig::descriptor()->FindOneofByName("kind");
  ASSERT_NE(kinds, nullptr);
  for (int i = 0; i < kinds->field_count(); ++i) {
    EXPECT_THAT(reference, HasSubstr("| [" + kinds->field(i)->name() + "](#"));
  }
}

TEST(LayerReferenceTest, SaysShapesAndVariables) {
  const std::string reference = Reference();
  EXPECT_THAT(reference, HasSubstr("| [conv2d](#conv2d) | one | `conv2d { filters: 8 kernel_size: "
                                   "5 stride: 2 padding: SAME }` | [28, 28, 3] | [14, 14, 8] |\n"));
  EXPECT_THAT(reference, HasSubstr("| [concat](#concat) | two or more | `concat {}` | [64], [16], "
                                   "[4] | [84] |\n"));
  EXPECT_THAT(reference, HasSubstr("Variables in the example: `dense_1/kernel` [64, 10], "
                                   "`dense_1/bias` [10]. Another layer may share them.\n"));
}

TEST(LayerReferenceTest, InputsOfEachKind) {
  EXPECT_EQ(InputsText(LayerKind::kDense), "one");
  EXPECT_EQ(InputsText(LayerKind::kMultiply), "two");
  EXPECT_EQ(InputsText(LayerKind::kAdd), "two or more");
  EXPECT_EQ(InputsText(LayerKind::kEmbedding), "a feature of the kind id");
  EXPECT_EQ(InputsText(LayerKind::kEmbeddingBag), "a feature of the kind bag");
}

TEST(LayerReferenceTest, AnUnknownKindHasNoExample) {
  EXPECT_EQ(ExampleOf("denze").status().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace keelson
