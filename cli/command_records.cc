#include "cli/command_records.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/status_macros.h"
#include "core/data/columns/data_source.h"
#include "core/data/open_datasets.h"

namespace keelson {

absl::StatusOr<std::unique_ptr<Dataset>> OpenRecords(const CommandRecords& records,
                                                     const v1::TrainConfig& config,
                                                     RecordSchema schema) {
  v1::DataConfig data = config.data();
  if (!records.data_dir.empty()) data.set_data_dir(records.data_dir);
  if (!records.files.empty()) {
    if (!HasNamedFiles(data)) {
      return absl::InvalidArgumentError(
          absl::StrCat("--files: expected a model of ", kSourcesWithFiles,
                       " files, found one of generated records or IDX files"));
    }
    data.clear_train_subset();
    data.clear_eval_subset();
    data.mutable_train_files()->Assign(records.files.begin(), records.files.end());
    *data.mutable_eval_files() = data.train_files();
  }
  if (records.no_labels) {
    schema.labels.clear();
    data.clear_labels();
  }
  ASSIGN_OR_RETURN(Datasets datasets, OpenDatasets(data, schema, config.train().seed()));
  return records.train ? std::move(datasets.train) : std::move(datasets.eval);
}

}  // namespace keelson
