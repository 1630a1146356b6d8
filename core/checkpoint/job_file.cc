#include "core/checkpoint/job_file.h"

#include <google/protobuf/io/tokenizer.h>
#include <google/protobuf/text_format.h>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr uint64_t kMaxJobFileBytes = uint64_t{1} << 20;
constexpr int64_t kMaxLeaseSeconds = 24 * 60 * 60;

absl::Status NotAJobFile(absl::string_view path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, ": not a job file: ", what,
                                          "; remove it if no job trains in its directory"));
}

absl::Status NewerFormat(absl::string_view path, uint32_t format) {
  return absl::FailedPreconditionError(
      absl::StrCat(path, ": expected format ", kJobFileFormat, " or older, found ", format,
                   ", which a newer build of Keelson has written"));
}

class NoOutput : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int, int, const std::string&) override {}
};

}  // namespace

std::string JobFilePath(absl::string_view model_dir) { return JoinPath(model_dir, "JOB"); }

std::string JobLockPath(absl::string_view model_dir) { return JoinPath(model_dir, "JOB.lock"); }

std::string FormatJobFile(const v1::JobFile& job) {
  std::string text;
  google::protobuf::TextFormat::PrintToString(job, &text);
  return text;
}

absl::StatusOr<v1::JobFile> ParseJobFile(const std::string& path, const std::string& text) {
  absl::string_view first = absl::string_view(text).substr(0, text.find('\n'));
  uint32_t format = 0;
  if (!absl::ConsumePrefix(&first, "format: ") || !absl::SimpleAtoi(first, &format) ||
      format == 0) {
    return NotAJobFile(path, "expected \"format: 1\" in its first line");
  }
  if (format > kJobFileFormat) return NewerFormat(path, format);
  NoOutput no_output;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&no_output);
  v1::JobFile job;
  if (!parser.ParseFromString(text, &job)) {
    return NotAJobFile(path, "expected the fields of keelson.v1.JobFile");
  }
  if (job.term() == 0 || job.lease_seconds() <= 0 || job.lease_seconds() > kMaxLeaseSeconds) {
    return NotAJobFile(
        path, absl::StrCat("expected a term and 1 to ", kMaxLeaseSeconds, " lease_seconds, found ",
                           job.term(), " and ", job.lease_seconds()));
  }
  return job;
}

absl::StatusOr<std::optional<StoredJobFile>> ReadJobFile(FileSystem* file_system,
                                                         const std::string& model_dir) {
  const std::string path = JobFilePath(model_dir);
  absl::StatusOr<VersionedContent> read = file_system->ReadVersioned(path, kMaxJobFileBytes);
  if (absl::IsNotFound(read.status())) return std::nullopt;
  RETURN_IF_ERROR(read.status());
  // What ReplaceIf leaves if the first one is interrupted.
  if (read->content.empty()) return std::nullopt;
  ASSIGN_OR_RETURN(v1::JobFile job, ParseJobFile(path, read->content));
  return StoredJobFile{std::move(job), std::move(read->version)};
}

std::string DescribeOwner(const v1::JobFile& job) {
  return absl::StrCat(job.job().empty() ? "" : absl::StrCat("job ", job.job(), ", "), job.task(),
                      " on ", job.host(), " (pid ", job.pid(), "), since ", job.since());
}

}  // namespace keelson
