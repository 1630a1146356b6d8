#include "core/summary/event_writer.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/base/file.h"
#include "core/base/host_name.h"
#include "core/base/status_macros.h"
#include "core/summary/tf_record.h"

namespace keelson {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";

absl::StatusOr<std::string> UnusedPath(FileSystem* file_system, const std::string& directory,
                                       const std::string& kind, absl::Time now) {
  const std::string host = HostName();
  const std::string base =
      JoinPath(directory, absl::StrFormat("%s.%010d.%s", kind, absl::ToUnixSeconds(now),
                                          host.empty() ? "localhost" : host));
  std::string path = base;
  for (int i = 1;; ++i) {
    ASSIGN_OR_RETURN(const bool exists, file_system->Exists(path));
    if (!exists) return path;
    path = absl::StrCat(base, ".", i);
  }
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
                                                                 std::string kind) {
  RETURN_IF_ERROR(file_system->CreateDirectories(directory));
  std::unique_ptr<EventWriter> writer(
      new EventWriter(directory, clock, file_system, std::move(kind)));
  MutexLock lock(&writer->mu_);
  RETURN_IF_ERROR(writer->OpenFile());
  return writer;
}

std::unique_ptr<EventWriter> EventWriter::CreateLazily(const std::string& directory,
                                                       const Clock* clock, FileSystem* file_system,
                                                       std::string kind) {
  return std::unique_ptr<EventWriter>(
      new EventWriter(directory, clock, file_system, std::move(kind)));
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
  if (!is_open) RETURN_IF_ERROR(OpenFile());
  return Append(std::move(event));
}

absl::Status EventWriter::OpenFile() {
  file_ = nullptr;
  ASSIGN_OR_RETURN(const std::string path,
                   UnusedPath(file_system_, directory_, kind_, clock_->Now()));
  ASSIGN_OR_RETURN(file_, file_system_->OpenForAppend(path, /*truncate=*/true));
  path_ = path;
  v1::Event version;
  version.set_file_version(kFileVersion);
  const absl::Status status = Append(std::move(version));
  // On a full disk each try would leave an empty file.
  if (!status.ok()) file_system_->Remove(path).IgnoreError();
  return status;
}

absl::Status EventWriter::Append(v1::Event event) {
  if (event.wall_time() == 0) {
    event.set_wall_time(static_cast<double>(absl::ToUnixMicros(clock_->Now())) / 1e6);
  }
  absl::Status status = file_->Append(EncodeTfRecord(event.SerializeAsString()));
  if (!status.ok()) file_ = nullptr;
  return status;
}

}  // namespace keelson
