#include "cli/predict.h"

#include <algorithm>
#include <fstream>
#include <ios>
#include <memory>
#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cli/output_file.h"
#include "cli/prediction_text.h"
#include "cli/snapshot_config.h"
#include "core/base/clock.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/base/thread.h"
#include "core/data/dataset.h"
#include "core/device/factory/device_factory.h"
#include "core/stored_model/stored_model.h"
#include "core/tensor_files/pending_file.h"
#include "core/tensor_files/snapshot_name.h"

namespace keelson {
namespace {

// Scores the records of a dataset batch by batch.
class Scoring {
 public:
  Scoring(const Dataset* records, StoredModel* model, const PredictOptions& options)
      : records_(records),
        model_(model),
        text_(&model->spec(), {options.json, options.features, !options.records.no_labels}),
        batch_size_(options.batch_size),
        num_records_(options.limit == 0 ? records->num_records()
                                        : std::min(options.limit, records->num_records())) {}

  ~Scoring() {
    if (reader_.Joinable()) reader_.Join();
  }

  int64_t num_records() const { return num_records_; }

  absl::Status WriteTo(std::ostream* out) {
    *out << text_.Header();
    BeginToRead(0);
    for (int64_t begin = 0; begin < num_records_; begin += batch_size_) {
      reader_.Join();
      RETURN_IF_ERROR(read_);
      std::swap(current_, next_);
      if (begin + batch_size_ < num_records_) BeginToRead(begin + batch_size_);
      RETURN_IF_ERROR(Score(begin, out));
    }
    return absl::OkStatus();
  }

 private:
  // Reads the batch that begins with this record into next_ and read_.
  void BeginToRead(int64_t begin) {
    numbers_.resize(std::min(batch_size_, num_records_ - begin));
    std::iota(numbers_.begin(), numbers_.end(), begin);
    reader_ = Thread([this] { read_ = records_->Read(numbers_, &next_); });
  }

  absl::Status Score(int64_t begin, std::ostream* out) {
    RETURN_IF_ERROR(model_->Predict(&current_, &outputs_));
    lines_.clear();
    text_.Append(begin, current_, outputs_, &lines_);
    out->write(lines_.data(), static_cast<std::streamsize>(lines_.size()));
    if (out->good()) return absl::OkStatus();
    return absl::UnavailableError("the predictions cannot be written");
  }

  const Dataset* const records_;
  StoredModel* const model_;
  const PredictionText text_;
  const int64_t batch_size_;
  const int64_t num_records_;
  std::vector<int64_t> numbers_;
  Batch current_, next_;
  absl::Status read_;
  std::vector<float> outputs_;
  std::string lines_;
  Thread reader_;  // last: it uses what is above
};

absl::Status WriteFile(const std::string& path, Scoring* scoring) {
  PendingFile file(path);
  std::ofstream out(file.temporary_path(), std::ios::binary);
  RETURN_IF_ERROR(scoring->WriteTo(&out));
  out.close();
  if (!out.good()) return absl::UnavailableError(absl::StrCat(path, ": cannot be written"));
  return file.Commit();
}

}  // namespace

absl::Status PredictRecords(const PredictOptions& options, std::ostream* out, std::ostream* log) {
  if (!options.out.empty()) RETURN_IF_ERROR(CheckOutput(options.out, options.force));
  ASSIGN_OR_RETURN(const std::string prefix, ResolveSnapshot(options.snapshot, options.foreign));
  ASSIGN_OR_RETURN(const v1::TrainConfig config, ReadConfigOf(prefix, options.config_path));
  DeviceOptions device_options;
  device_options.threads = options.threads;
  ASSIGN_OR_RETURN(const std::unique_ptr<Device> device, CreateDevice("cpu", device_options));
  ASSIGN_OR_RETURN(const std::unique_ptr<StoredModel> model,
                   StoredModel::Create(config, device.get()));
  ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> records,
                   OpenRecords(options.records, config, model->spec().records));
  RETURN_IF_ERROR(model->Load(prefix, FileSystem::Real()));
  const absl::Duration start = Clock::Real()->Monotonic();
  Scoring scoring(records.get(), model.get(), options);
  RETURN_IF_ERROR(options.out.empty() ? scoring.WriteTo(out) : WriteFile(options.out, &scoring));
  const double seconds = absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start);
  *log << absl::StrFormat("%d records scored with %s in %.1f s, %.0f per second\n",
                          scoring.num_records(), prefix, seconds,
                          static_cast<double>(scoring.num_records()) / seconds);
  return absl::OkStatus();
}

}  // namespace keelson
