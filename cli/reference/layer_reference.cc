#include "cli/reference/layer_reference.h"

#include <google/protobuf/text_format.h>

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"
#include "core/model/spec/layers/layer_rules.h"
#include "core/tensor/shape.h"
#include "keelson/v1/train_config.pb.h"

namespace keelson {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

struct Example {
  const char* kind;
  const char* fields;
  std::vector<Shape> inputs;
};

// Shapes that show what becomes of each extent.
std::vector<Example> Examples() {
  const Shape image = {28, 28, 3};
  const Shape row = {64};
  const Shape none;  // of a feature that is no numbers
  return {
      {"dense", "units: 10", {row}},
      {"conv2d", "filters: 8 kernel_size: 5 stride: 2 padding: SAME", {image}},
      {"max_pool", "size: 2", {image}},
      {"avg_pool", "size: 2", {image}},
      {"flatten", "", {image}},
      {"relu", "", {row}},
      {"tanh", "", {row}},
      {"sigmoid", "", {row}},
      {"dropout", "rate: 0.5", {row}},
      {"batch_norm", "", {image}},
      {"add", "", {row, row}},
      {"multiply", "", {row, row}},
      {"concat", "", {row, {16}, {4}}},
      {"slice", "begin: 16 size: 8", {row}},
      {"scale", "factor: 0.5", {row}},
      {"gelu", "", {row}},
      {"silu", "", {row}},
      {"softmax", "", {row}},
      {"layer_norm", "", {{8, 64}}},
      {"global_average_pool", "", {image}},
      {"reshape", "shape: 8 shape: -1", {row}},
      {"cross", "rank: 16", {row, row}},
      {"embedding", "rows: 1000 dim: 16", {none}},
      {"embedding_bag", "rows: 1000 dim: 16 combiner: SUM", {none}},
      {"dot", "", {row, row}},
      {"cosine", "", {row, row}},
      {"factorization_machine", "", {row, row, row}},
      {"dot_interaction", "", {row, row, row}},
      {"transpose", "axes: 2 axes: 0 axes: 1", {image}},
  };
}

// In Markdown, where a comment's own signs mean what they are.
std::string Escaped(absl::string_view text) {
  return absl::StrReplaceAll(
      text, {{"*", "\\*"}, {"<", "&lt;"}, {"|", "\\|"}, {"[", "\\["}, {"]", "\\]"}});
}

std::string OneLine(absl::string_view text) {
  return absl::StrReplaceAll(Escaped(text), {{"\n", " "}});
}

std::string ShapesText(const LayerSpec& layer) {
  if (RulesOf(layer.kind).input_kind != FeatureKind::kNumbers) return "ids";
  return absl::StrJoin(layer.input_shapes, ", ", [](std::string* out, const Shape& shape) {
    absl::StrAppend(out, shape.ToString());
  });
}

std::string FieldTable(const Descriptor& message) {
  if (message.field_count() == 0) return "";
  std::string text = "| field | type | |\n|---|---|---|\n";
  for (int i = 0; i < message.field_count(); ++i) {
    const FieldDescriptor& field = *message.field(i);
    absl::StrAppend(&text, "| `", field.name(), "` | ", Escaped(TypeText(field)), " | ",
                    OneLine(CommentOf(field)), " |\n");
  }
  return absl::StrCat(text, "\n");
}

std::string VariablesText(const LayerExample& example) {
  if (example.variables.empty()) return "";
  return absl::StrCat(
      "Variables in the example: ",
      absl::StrJoin(example.variables, ", ",
                    [](std::string* out, const VariableSpec& variable) {
                      absl::StrAppend(out, "`", variable.name, "` ", variable.shape.ToString(),
                                      variable.trained() ? "" : ", not trained");
                    }),
      ".", RulesOf(example.layer.kind).shares_variables ? " Another layer may share them." : "",
      "\n\n");
}

std::string Section(const FieldDescriptor& kind, const LayerExample& example) {
  const Descriptor& message = *kind.message_type();
  const std::string comment = CommentOfFieldOrMessage(kind);
  return absl::StrCat("## ", kind.name(), "\n", Escaped(comment), comment.empty() ? "" : "\n\n",
                      FieldTable(message), VariablesText(example));
}

}  // namespace

absl::StatusOr<LayerExample> ExampleOf(absl::string_view kind) {
  const std::vector<Example> examples = Examples();
  const auto found = std::find_if(examples.begin(), examples.end(),
                                  [&](const Example& example) { return example.kind == kind; });
  if (found == examples.end()) {
    return absl::InternalError(absl::StrCat("the layer ", kind, " has no example"));
  }
  LayerExample example;
  example.config = *found->fields == 0 ? absl::StrCat(kind, " {}")
                                       : absl::StrCat(kind, " { ", found->fields, " }");
  v1::LayerConfig config;
  if (!google::protobuf::TextFormat::ParseFromString(example.config, &config)) {
    return absl::InternalError(absl::StrCat("the example of ", kind, " is malformed"));
  }
  LayerSpec& layer = example.layer;
  ASSIGN_OR_RETURN(layer.kind, LayerKindOf(config, "example"));
  layer.name = absl::StrCat(kind, "_1");
  layer.input_shapes = found->inputs;
  layer.input = found->inputs.front();
  for (size_t i = 0; i < found->inputs.size(); ++i) layer.inputs.push_back(i);
  const LayerContext context = {std::string(kind), /*owner=*/nullptr, &example.variables};
  RETURN_IF_ERROR(RulesOf(layer.kind).infer(config, context, &layer));
  return example;
}

std::string InputsText(LayerKind kind) {
  const LayerRules rules = RulesOf(kind);
  if (rules.input_kind == FeatureKind::kId) return "a feature of the kind id";
  if (rules.input_kind == FeatureKind::kBag) return "a feature of the kind bag";
  const std::string number = rules.inputs == 1   ? "one"
                             : rules.inputs == 2 ? "two"
                                                 : absl::StrCat(rules.inputs);
  return rules.more_inputs ? absl::StrCat(number, " or more") : number;
}

absl::StatusOr<std::string> LayerReference(const ConfigReference& reference) {
  const Descriptor* const layer = reference.Find("keelson.v1.LayerConfig");
  const google::protobuf::OneofDescriptor* const kinds =
      layer == nullptr ? nullptr : layer->FindOneofByName("kind");
  if (kinds == nullptr) return absl::InternalError("the configuration has no kinds of layers");
  std::string table = "| layer | inputs | example | of | gives |\n|---|---|---|---|---|\n";
  std::string sections;
  for (int i = 0; i < kinds->field_count(); ++i) {
    const FieldDescriptor& kind = *kinds->field(i);
    ASSIGN_OR_RETURN(const LayerExample example, ExampleOf(kind.name()));
    absl::StrAppend(&table, "| [", kind.name(), "](#", kind.name(), ") | ",
                    InputsText(example.layer.kind), " | `", example.config, "` | ",
                    ShapesText(example.layer), " | ", example.layer.output.ToString(), " |\n");
    absl::StrAppend(&sections, Section(kind, example));
  }
  // Sections end with an empty line.
  while (sections.size() > 1 && sections.substr(sections.size() - 2) == "\n\n") sections.pop_back();
  return absl::StrCat(
      "# Layers\n\nWhat `layers` of a model may be, with the shapes of one record; "
      "[models.md](models.md) says how to connect them.\n"
      "This page is what `keelson_ctl explain --layers` prints; `keelson_ctl explain "
      "model.layers.dense` "
      "says it of one layer,\nand so of every field of a configuration.\n\n",
      table, "\n", sections);
}

}  // namespace keelson
