#include "core/data/open_record_files.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/status_macros.h"
#include "core/data/block_records.h"
#include "core/data/columnar_records.h"
#include "core/data/columns/record_maker.h"
#include "core/data/criteo_format.h"
#include "core/data/csv_format.h"
#include "core/data/data_files.h"
#include "core/data/example_format.h"
#include "core/data/file_records.h"
#include "core/data/libffm_format.h"
#include "core/data/libsvm_format.h"
#include "core/data/npz_blocks.h"
#include "core/data/parquet/parquet_blocks.h"
#include "core/data/readable_records.h"
#include "core/data/record_format.h"
#include "core/data/record_selection.h"
#include "core/data/stream/stream_dataset.h"
#include "core/data/stream/stream_directory.h"

namespace keelson {
namespace {

// `path` is the first of the files.
absl::StatusOr<std::unique_ptr<const RecordFormat>> FormatOf(const v1::DataConfig& config,
                                                             const RecordSchema& schema,
                                                             const std::string& path,
                                                             FileSystem* file_system) {
  if (config.has_tf_record()) return NewExampleFormat(config, schema, path, file_system);
  if (config.has_csv()) return NewCsvFormat(config, schema, path, file_system);
  if (config.has_criteo()) return NewCriteoFormat(config.criteo(), schema);
  if (config.has_libffm()) return NewLibffmFormat(config.libffm(), schema);
  return NewLibsvmFormat(config.libsvm(), schema);
}

class RecordFilesOpener {
 public:
  RecordFilesOpener(const v1::DataConfig& config, const RecordSchema& schema,
                    FileSystem* file_system)
      : config_(config), schema_(schema), file_system_(file_system) {}

  absl::StatusOr<Datasets> Open() const {
    if (config_.data_dir().empty()) {
      return absl::InvalidArgumentError(
          "data.data_dir: expected the directory of the files (--data_dir), found none");
    }
    if (config_.has_stream()) return OpenStream();
    ASSIGN_OR_RETURN(const std::vector<std::string> train_files,
                     Find(config_.train_files(), "data.train_files"));
    ASSIGN_OR_RETURN(const Records train, Read(train_files));
    if (config_.eval_files().empty()) return Split(train);
    ASSIGN_OR_RETURN(const std::vector<std::string> eval_files,
                     Find(config_.eval_files(), "data.eval_files"));
    if (eval_files == train_files) return Select(train, All(train), train, All(train));
    ASSIGN_OR_RETURN(const Records eval, Read(eval_files));
    return Select(train, All(train), eval, All(eval));
  }

 private:
  using Records = std::shared_ptr<const ReadableRecords>;

  static RecordSelection All(const Records& records) { return {0, records->size()}; }

  absl::StatusOr<std::vector<std::string>> Find(
      const google::protobuf::RepeatedPtrField<std::string>& patterns,
      absl::string_view field) const {
    return FindDataFiles(config_.data_dir(),
                         std::vector<std::string>(patterns.begin(), patterns.end()), field,
                         file_system_);
  }

  absl::StatusOr<Records> Read(const std::vector<std::string>& paths) const {
    if (config_.has_columnar()) return OpenColumnarRecords(paths, schema_, file_system_);
    if (config_.has_npz() || config_.has_parquet()) return ReadBlocks(paths);
    return OpenFileRecords(config_, schema_, paths, file_system_);
  }

  absl::StatusOr<Datasets> OpenStream() const {
    ASSIGN_OR_RETURN(const std::vector<std::string> eval_files,
                     Find(config_.eval_files(), "data.eval_files"));
    ASSIGN_OR_RETURN(const Records eval, Read(eval_files));
    ASSIGN_OR_RETURN(const RecordSelection range,
                     SelectRecords(config_.eval_subset(), "eval_subset", eval->where(), All(eval)));
    const auto directory = std::make_shared<StreamDirectory>(config_, schema_, file_system_);
    auto stream = std::make_unique<StreamDataset>(directory);
    Datasets datasets;
    datasets.stream = stream.get();
    datasets.stream_directory = directory;
    datasets.train = std::move(stream);
    datasets.eval = NewFileDataset(eval, range.begin, range.end);
    return datasets;
  }

  absl::StatusOr<Records> ReadBlocks(const std::vector<std::string>& paths) const {
    ASSIGN_OR_RETURN(const std::shared_ptr<const RecordMaker> maker,
                     RecordMaker::Create(config_, schema_, file_system_));
    std::vector<std::unique_ptr<BlockFile>> files;
    for (const std::string& path : paths) {
      ASSIGN_OR_RETURN(std::unique_ptr<BlockFile> file,
                       config_.has_npz() ? OpenNpzBlocks(path, maker->needed())
                                         : OpenParquetBlocks(path, maker->needed()));
      files.push_back(std::move(file));
    }
    return OpenBlockRecords(std::move(files), maker, config_.max_bad_records());
  }

  absl::StatusOr<Datasets> Split(const Records& records) const {
    const int64_t boundary = records->size() * 4 / 5;
    return Select(records, {0, boundary}, records, {boundary, records->size()});
  }

  absl::StatusOr<Datasets> Select(const Records& train, RecordSelection train_all,
                                  const Records& eval, RecordSelection eval_all) const {
    ASSIGN_OR_RETURN(
        const RecordSelection train_range,
        SelectRecords(config_.train_subset(), "train_subset", train->where(), train_all));
    ASSIGN_OR_RETURN(const RecordSelection eval_range,
                     SelectRecords(config_.eval_subset(), "eval_subset", eval->where(), eval_all));
    return Datasets{NewFileDataset(train, train_range.begin, train_range.end),
                    NewFileDataset(eval, eval_range.begin, eval_range.end)};
  }

  const v1::DataConfig& config_;
  const RecordSchema& schema_;
  FileSystem* const file_system_;
};

}  // namespace

absl::StatusOr<std::shared_ptr<const FileRecords>> OpenFileRecords(
    const v1::DataConfig& config, const RecordSchema& schema, const std::vector<std::string>& paths,
    FileSystem* file_system) {
  ASSIGN_OR_RETURN(std::unique_ptr<const RecordFormat> format,
                   FormatOf(config, schema, paths.front(), file_system));
  return FileRecords::Open(paths, std::move(format), config.max_bad_records(), file_system);
}

absl::StatusOr<Datasets> OpenRecordFiles(const v1::DataConfig& config, const RecordSchema& schema,
                                         FileSystem* file_system) {
  return RecordFilesOpener(config, schema, file_system).Open();
}

}  // namespace keelson
