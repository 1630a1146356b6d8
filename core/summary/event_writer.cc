#include "core/summary/event_writer.h"

#include <unistd.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "core/base/status_macros.h"
#include "core/summary/tf_record.h"

namespace keelson {
namespace {

constexpr char kFileVersion[] = "brain.Event:2";

std::string HostName() {
  char name[256] = {};
  if (gethostname(name, sizeof(name) - 1) != 0 || name[0] == '\0') return "localhost";
  return name;
}

std::string UnusedPath(const std::string& directory, absl::Time now) {
  const std::string base = JoinPath(
      directory,
      absl::StrFormat("events.out.tfevents.%010d.%s", absl::ToUnixSeconds(now), HostName()));
  std::string path = base;
  for (int i = 1; FileExists(path); ++i) path = absl::StrCat(base, ".", i);
  return path;
}

}  // namespace

absl::StatusOr<std::unique_ptr<EventWriter>> EventWriter::Create(const std::string& directory,
                                                                 const Clock* clock) {
  RETURN_IF_ERROR(CreateDirectories(directory));
  std::string path = UnusedPath(directory, clock->Now());
  ASSIGN_OR_RETURN(std::unique_ptr<AppendFile> file, AppendFile::Open(path, /*truncate=*/true));
  std::unique_ptr<EventWriter> writer(new EventWriter(std::move(path), std::move(file), clock));
  v1::Event version;
  version.set_file_version(kFileVersion);
  RETURN_IF_ERROR(writer->Write(std::move(version)));
  return writer;
}

EventWriter::EventWriter(std::string path, std::unique_ptr<AppendFile> file, const Clock* clock)
    : path_(std::move(path)), clock_(clock), file_(std::move(file)) {}

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

absl::Status EventWriter::Flush() {
  MutexLock lock(&mu_);
  return file_->Sync();
}

absl::Status EventWriter::Write(v1::Event event) {
  event.set_wall_time(static_cast<double>(absl::ToUnixMicros(clock_->Now())) / 1e6);
  const std::string record = EncodeTfRecord(event.SerializeAsString());
  MutexLock lock(&mu_);
  return file_->Append(record);
}

}  // namespace keelson
