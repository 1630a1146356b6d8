#include "cli/data/convert.h"

#include <memory>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "cli/text_table.h"
#include "core/base/status_macros.h"
#include "core/config/train_config.h"
#include "core/data/columnar_file.h"
#include "core/data/columnar_writer.h"
#include "core/data/open_datasets.h"
#include "core/model/spec/model_spec.h"

namespace keelson {
namespace {

absl::Status CheckConvert(const ConvertOptions& options) {
  if (options.train.empty() && options.eval.empty()) {
    return absl::InvalidArgumentError(
        "convert: expected a file to write (--train, --eval or both), found none");
  }
  if (options.train != options.eval) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--eval: expected another file than --train, found ", options.eval));
}

absl::Status WriteDataset(const Dataset& records, const RecordSchema& schema,
                          const std::string& path, FileSystem* file_system, std::ostream* out) {
  RETURN_IF_ERROR(WriteColumnarFile(records, schema, path, file_system));
  *out << path << ": " << records.num_records() << " records\n";
  return absl::OkStatus();
}

std::string ValuesText(const ColumnarFeature& feature) {
  return feature.spec.kind == FeatureKind::kNumbers ? "-"
                                                    : absl::StrCat("ids up to ", feature.max_id);
}

}  // namespace

absl::Status ConvertRecords(const ConvertOptions& options, FileSystem* file_system,
                            std::ostream* out) {
  RETURN_IF_ERROR(CheckConvert(options));
  ASSIGN_OR_RETURN(v1::TrainConfig config, LoadTrainConfig(options.config));
  if (!options.data_dir.empty()) config.mutable_data()->set_data_dir(options.data_dir);
  RETURN_IF_ERROR(FinalizeTrainConfig(&config));
  ASSIGN_OR_RETURN(const ModelSpec spec, InferModelSpec(config.model()));
  ASSIGN_OR_RETURN(const Datasets datasets,
                   OpenDatasets(config.data(), spec.records, config.train().seed()));
  if (!options.train.empty()) {
    RETURN_IF_ERROR(WriteDataset(*datasets.train, spec.records, options.train, file_system, out));
  }
  if (options.eval.empty()) return absl::OkStatus();
  return WriteDataset(*datasets.eval, spec.records, options.eval, file_system, out);
}

absl::Status DescribeColumnar(const std::string& path, FileSystem* file_system, std::ostream* out) {
  ASSIGN_OR_RETURN(const std::unique_ptr<ColumnarFile> file, ColumnarFile::Open(path, file_system));
  RETURN_IF_ERROR(file->CheckAll());
  TextTable table;
  table.AddRow({"name", "is", "values"});
  for (const ColumnarFeature& feature : file->layout().features) {
    table.AddRow(
        {absl::CHexEscape(feature.spec.name), feature.spec.FormText(), ValuesText(feature)});
  }
  for (const ColumnarLabel& label : file->layout().labels) {
    table.AddRow({absl::CHexEscape(label.name), "label",
                  absl::StrCat(label.min, " to ", label.max, label.whole ? ", whole" : "")});
  }
  *out << file->layout().num_records << " records of " << path
       << ", a columnar file; all checksums fit\n"
       << table.ToString();
  return absl::OkStatus();
}

}  // namespace keelson
