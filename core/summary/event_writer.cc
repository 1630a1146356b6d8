#include "core/summary/event_writer.h"

#include <algorithm>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_format.h"
#include "absl/strings/strip.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/host_name.h"
#include "core/base/log.h"
#include "core/base/status_macros.h"
#include "core/summary/tf_record.h"

namespace keelson {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";
constexpr int64_t kLastSeconds = 9'999'999'999;

// The seconds in a name "<kind>.<seconds>.<host>"; 0: it is none. Only names with the usual ten
// digits sort by age, and no name is behind the last of them.
int64_t SecondsIn(absl::string_view name, absl::string_view kind) {
  int64_t seconds = 0;
  if (!absl::ConsumePrefix(&name, kind) || !absl::ConsumePrefix(&name, ".")) return 0;
  const absl::string_view digits = name.substr(0, name.find('.'));
  return absl::SimpleAtoi(digits, &seconds) && seconds < kLastSeconds ? seconds : 0;
}

// Sorts behind all files of this kind in the directory.
absl::StatusOr<std::string> NextPath(FileSystem* file_system, const std::string& directory,
                                     const std::string& kind, absl::Time now) {
  ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system->List(directory));
  int64_t seconds = absl::ToUnixSeconds(now);
  for (const std::string& name : names) seconds = std::max(seconds, SecondsIn(name, kind) + 1);
  const std::string host = HostName();
  return JoinPath(directory,
                  absl::StrFormat("%s.%010d.%s", kind, seconds, host.empty() ? "localhost" : host));
}

}  // namespace

v1::Event HistogramEvent(int64_t step,
                         absl::Span<const std::pair<std::string, Histogram>> histograms) {
  v1::Event event;
  event.set_step(step);
  for (const auto& [tag, histogram] : histograms) {
    v1::Summary::Value* out = event.mutable_summary()->add_value();
    out->set_tag(tag);
    *out->mutable_histo() = histogram.ToProto();
  }
  return event;
}

absl::StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& directory,
                                                                 const Clock* clock,
                                                                 FileSystem* file_system,
                                                                 std::string kind,
                                                                 const EventLimits& limits) {
  RETURN_IF_ERROR(file_system->CreateDirectories(directory));
  std::unique_ptr<EventWriter> writer(
      new EventWriter(directory, clock, file_system, std::move(kind), limits));
  MutexLock lock(&writer->mu_);
  RETURN_IF_ERROR(writer->OpenNextFile());
  return writer;
}

std::unique_ptr<EventWriter> EventWriter::CreateLazily(const std::string& directory,
                                                       const Clock* clock, FileSystem* file_system,
                                                       std::string kind) {
  return std::unique_ptr<EventWriter>(
      new EventWriter(directory, clock, file_system, std::move(kind), EventLimits()));
}

absl::Status EventWriter::AddScalars(int64_t step,
                                     absl::Span<const std::pair<std::string, double>> scalars) {
  v1::Event event;
  event.set_step(step);
  for (const auto& [tag, value] : scalars) {
    v1::Summary::Value* out = event.mutable_summary()->add_value();
    out->set_tag(tag);
    out->set_simple_value(static_cast<float>(value));
  }
  return Write(std::move(event));
}

absl::Status EventWriter::AddHistograms(
    int64_t step, absl::Span<const std::pair<std::string, Histogram>> histograms) {
  return Write(HistogramEvent(step, histograms));
}

absl::Status EventWriter::AddText(absl::string_view tag, absl::string_view text) {
  v1::Event event;
  v1::Summary::Value* out = event.mutable_summary()->add_value();
  out->set_tag(std::string(tag));
  out->mutable_tensor()->set_dtype(v1::TensorProto::DT_STRING);
  out->mutable_tensor()->mutable_tensor_shape();
  out->mutable_tensor()->add_string_val(std::string(text));
  out->mutable_metadata()->set_data_class(v1::SummaryMetadata::DATA_CLASS_TENSOR);
  out->mutable_metadata()->mutable_plugin_data()->set_plugin_name("text");
  return Write(std::move(event));
}

absl::Status EventWriter::AddHparams(const Hparams& hparams) {
  v1::Event event;
  *event.mutable_summary() = HparamsSummary(hparams, clock_->Now());
  return Write(std::move(event));
}

absl::Status EventWriter::AddSessionStart(int64_t step) {
  v1::Event event;
  event.set_step(step + 1);
  event.mutable_session_log()->set_status(v1::SessionLog::START);
  return Write(std::move(event));
}

absl::Status EventWriter::AddSessionEnd(bool success) {
  v1::Event event;
  *event.mutable_summary() = SessionEndSummary(success, clock_->Now());
  return Write(std::move(event));
}

absl::Status EventWriter::AddEvent(v1::Event event) { return Write(std::move(event)); }

absl::Status EventWriter::Flush() {
  MutexLock lock(&mu_);
  return file_ == nullptr ? absl::OkStatus() : file_->Sync();
}

std::string EventWriter::path() const {
  MutexLock lock(&mu_);
  return path_;
}

absl::Status EventWriter::Write(v1::Event event) {
  MutexLock lock(&mu_);
  bool is_open = file_ != nullptr;
  if (is_open) {
    ASSIGN_OR_RETURN(is_open, file_system_->Exists(path_));
  }
  if (!is_open) RETURN_IF_ERROR(OpenNextFile());
  RETURN_IF_ERROR(Append(std::move(event)));
  if (file_bytes_ < limits_.file_bytes) return absl::OkStatus();
  const std::unique_ptr<AppendFile> full = std::move(file_);
  return full->Close();
}

absl::Status EventWriter::OpenNextFile() {
  RETURN_IF_ERROR(OpenFile());
  const absl::Status thinned = ThinEventFiles(directory_, kind_, limits_, file_system_);
  if (!thinned.ok()) LogWarning("event files are not thinned: ", thinned.message());
  return absl::OkStatus();
}

absl::Status EventWriter::OpenFile() {
  file_ = nullptr;
  ASSIGN_OR_RETURN(const std::string path,
                   NextPath(file_system_, directory_, kind_, clock_->Now()));
  ASSIGN_OR_RETURN(file_, file_system_->OpenForAppend(path, /*truncate=*/true));
  path_ = path;
  file_bytes_ = 0;
  v1::Event version;
  version.set_file_version(kFileVersion);
  version.mutable_source_metadata()->set_writer(kEventFileWriter);
  const absl::Status status = Append(std::move(version));
  // On a full disk each try would leave an empty file.
  if (!status.ok()) file_system_->Remove(path).IgnoreError();
  return status;
}

absl::Status EventWriter::Append(v1::Event event) {
  if (event.wall_time() == 0) {
    event.set_wall_time(static_cast<double>(absl::ToUnixMicros(clock_->Now())) / 1e6);
  }
  const std::string record = EncodeTfRecord(event.SerializeAsString());
  absl::Status status = file_->Append(record);
  file_bytes_ += static_cast<int64_t>(record.size());
  if (!status.ok()) file_ = nullptr;
  return status;
}

}  // namespace keelson
