#include "core/config/run_description.h"

#include <google/protobuf/text_format.h>

#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "core/base/status_macros.h"
#include "core/cluster/consistency.h"
#include "core/model/spec/model_spec.h"
#include "core/model/spec/model_variables.h"

namespace keelson {
namespace {

// The name of the field that is set in the oneof; empty if none is.
std::string ChoiceIn(const google::protobuf::Message& message, const std::string& oneof) {
  const google::protobuf::FieldDescriptor* const field =
      message.GetReflection()->GetOneofFieldDescriptor(
          message, message.GetDescriptor()->FindOneofByName(oneof));
  return field == nullptr ? "" : field->name();
}

// Returns the text as Markdown that is shown verbatim.
std::string AsCode(const std::string& text) {
  return absl::StrCat("    ", absl::StrReplaceAll(text, {{"\n", "\n    "}}));
}

// A table in Markdown: a row for each layer.
std::string DescribeLayers(const ModelSpec& model) {
  std::string text = "| layer | kind | output | parameters |\n|---|---|---|---:|\n";
  for (const FeatureSpec& feature : model.records.features) {
    absl::StrAppend(&text, "| `", feature.name, "` | | ", feature.FormText(), " | |\n");
  }
  int64_t all = 0;
  for (const LayerSpec& layer : model.layers) {
    const int64_t parameters = model.parameters_of(layer);
    all += parameters;
    absl::StrAppend(&text, "| `", layer.name, "` | ", LayerKindName(layer.kind), " | ",
                    layer.output.ToString(), " | ", parameters, " |\n");
  }
  absl::StrAppend(&text, "\n", all, " parameters, loss ", model.LossText(), "\n");
  return text;
}

// Likewise a row for each variable.
std::string DescribeVariables(absl::Span<const VariableSpec> variables) {
  std::string text = "| variable | shape | elements |\n|---|---|---:|\n";
  int64_t all = 0;
  for (const VariableSpec& variable : variables) {
    all += variable.shape.num_elements();
    absl::StrAppend(&text, "| `", variable.name, "` | ", variable.shape.ToString(), " | ",
                    variable.shape.num_elements(), " |\n");
  }
  absl::StrAppend(&text, "\n", all, " parameters, gradients by a script\n");
  return text;
}

absl::StatusOr<std::string> DescribeModel(const v1::ModelConfig& config) {
  if (config.has_external()) {
    ASSIGN_OR_RETURN(const ModelVariables model, InferVariables(config));
    return DescribeVariables(model.variables);
  }
  ASSIGN_OR_RETURN(const ModelSpec model, InferModelSpec(config));
  return DescribeLayers(model);
}

absl::StatusOr<std::string> LossText(const v1::ModelConfig& config) {
  if (config.has_external()) return "a script's";
  ASSIGN_OR_RETURN(const ModelSpec model, InferModelSpec(config));
  return model.LossText();
}

// "wide/*: ftrl; deep/*: frozen".
std::string DescribeGroups(const v1::OptimizerConfig& optimizer) {
  return absl::StrJoin(optimizer.groups(), "; ",
                       [&](std::string* out, const v1::OptimizerConfig::Group& group) {
                         const std::string own = ChoiceIn(group, "kind");
                         absl::StrAppend(out, group.variables(), ": ",
                                         group.frozen() ? "frozen"
                                         : own.empty()  ? ChoiceIn(optimizer, "kind")
                                                        : own);
                       });
}

}  // namespace

absl::StatusOr<Hparams> DescribeHparams(const v1::TrainConfig& config) {
  ASSIGN_OR_RETURN(const std::string loss, LossText(config.model()));
  ASSIGN_OR_RETURN(const ConsistencyMode mode,
                   ConsistencyMode::FromProto(config.consistency().mode()));
  const auto number = [](auto value) { return static_cast<double>(value); };
  Hparams out;
  out.values = {
      {"model", config.model().name()},
      {"loss", loss},
      {"optimizer", ChoiceIn(config.optimizer(), "kind")},
      {"clip_global_norm", number(config.optimizer().clip_global_norm())},
      {"l2", number(config.optimizer().l2())},
      {"learning_rate", number(config.learning_rate().base())},
      {"learning_rate_schedule", ChoiceIn(config.learning_rate(), "schedule")},
      {"warmup_steps", number(config.learning_rate().warmup_steps())},
      {"batch_size", number(config.train().batch_size())},
      {"max_steps", number(config.train().max_steps())},
      {"epochs", number(config.train().epochs())},
      {"seed", number(config.train().seed())},
      {"mode", mode.ToString()},
      {"pipeline_depth", number(config.transfer().depth())},
  };
  if (!config.optimizer().groups().empty()) {
    out.values["optimizer_groups"] = DescribeGroups(config.optimizer());
  }
  return out;
}

absl::Status WriteRunDescription(const v1::TrainConfig& config, EventWriter* writer) {
  ASSIGN_OR_RETURN(const Hparams hparams, DescribeHparams(config));
  ASSIGN_OR_RETURN(const std::string model, DescribeModel(config.model()));
  RETURN_IF_ERROR(writer->AddText("model", model));
  std::string text;
  google::protobuf::TextFormat::PrintToString(config, &text);
  RETURN_IF_ERROR(writer->AddText("config", AsCode(text)));
  return writer->AddHparams(hparams);
}

}  // namespace keelson
