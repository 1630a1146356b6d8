#include "core/checkpoint/job_file.h"

#include "core/base/file_system_testing.h"
#include "gmock/gmock.h"
#include "google/protobuf/util/message_differencer.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

using google::protobuf::util::MessageDifferencer;
using testing::AllOf;
using testing::HasSubstr;

constexpr char kPath[] = "/model/JOB";

v1::JobFile Sample() {
  v1::JobFile job;
  job.set_format(kJobFileFormat);
  job.set_term(3);
  job.set_owner(17);
  job.set_job("mnist");
  job.set_task("chief-0");
  job.set_host("host-1");
  job.set_pid(4711);
  job.set_since("2026-11-23T15:00:00+00:00");
  job.set_lease_seconds(20);
  job.set_config("train { batch_size: 64 }");
  return job;
}

TEST(JobFileTest, IsReadAsItWasWritten) {
  const auto read = ParseJobFile(kPath, FormatJobFile(Sample()));
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_TRUE(MessageDifferencer::Equals(*read, Sample()));
}

TEST(JobFileTest, OfANewerFormatIsRefusedWithBoth) {
  const absl::Status status = ParseJobFile(kPath, "format: 2\nunheard_of { }\n").status();
  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition) << status;
  EXPECT_THAT(std::string(status.message()),
              AllOf(HasSubstr(kPath), HasSubstr("format 1 or older"), HasSubstr("found 2")));
}

TEST(JobFileTest, WhatIsNoneIsRefused) {
  v1::JobFile without_term = Sample();
  without_term.clear_term();
  v1::JobFile without_lease = Sample();
  without_lease.set_lease_seconds(int64_t{1} << 40);
  std::string cut = FormatJobFile(Sample());
  cut.pop_back();
  cut.pop_back();
  for (const std::string& text :
       {std::string("\n"), std::string("format: 0\n"), std::string("format: -1\nterm: 1\n"),
        std::string("format: 1\nunheard_of: 1\n"), std::string("term: 1\nformat: 1\n"), cut,
        FormatJobFile(without_term), FormatJobFile(without_lease)}) {
    const absl::Status status = ParseJobFile(kPath, text).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << text;
    EXPECT_THAT(std::string(status.message()), HasSubstr("/model/JOB: not a job file"));
  }
}

TEST(JobFileTest, AnAbsentOrEmptyOneIsNone) {
  MemoryFileSystem files;
  ASSERT_EQ(files.CreateDirectories("/model"), absl::OkStatus());
  EXPECT_EQ(ReadJobFile(&files, "/model")->has_value(), false);
  files.SetContent(kPath, "");
  EXPECT_EQ(ReadJobFile(&files, "/model")->has_value(), false);
  files.SetContent(kPath, std::string((1 << 20) + 1, 'x'));
  EXPECT_EQ(ReadJobFile(&files, "/model").status().code(), absl::StatusCode::kDataLoss);
}

TEST(JobFileTest, NamesTheOwner) {
  v1::JobFile job = Sample();
  EXPECT_EQ(DescribeOwner(job),
            "job mnist, chief-0 on host-1 (pid 4711), since 2026-11-23T15:00:00+00:00");
  job.clear_job();
  EXPECT_EQ(DescribeOwner(job), "chief-0 on host-1 (pid 4711), since 2026-11-23T15:00:00+00:00");
}

}  // namespace
}  // namespace keelson
