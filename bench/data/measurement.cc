#include "bench/data/measurement.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "core/base/file.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/data/columnar_records.h"
#include "core/data/columnar_writer.h"
#include "core/data/file_records.h"
#include "core/data/readable_records.h"
#include "core/data/record_index.h"
#include "core/data/record_order.h"

namespace keelson::bench {
namespace {

constexpr char kInOrder[] = "in order", kColumnarInOrder[] = "columnar, in order";

struct Operation {
  std::string name;
  std::function<absl::Status()> run;
  double goal = 0;
};

// This is the thread's own time: what others do on the machine's cores does not count.
double CoreSeconds() {
  timespec time;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

int64_t CountLines(absl::string_view content) {
  int64_t lines = 0;
  for (const char *at = content.data(), *const end = at + content.size(); at < end; ++lines) {
    const void* const newline = std::memchr(at, '\n', end - at);
    at = newline == nullptr ? end : static_cast<const char*>(newline) + 1;
  }
  return lines;
}

absl::Status ParseAll(absl::string_view content, const RecordFormat& format, int64_t batch_size,
                      Batch* batch) {
  int64_t row = 0;
  for (size_t begin = 0; begin < content.size();) {
    const size_t end = content.find('\n', begin);
    if (row == 0) Resize(batch_size, format.schema(), batch);
    RecordError error;
    if (!format.Parse(content.substr(begin, end - begin), row, batch, &error)) {
      return absl::InvalidArgumentError(
          absl::StrCat("expected ", error.expected, ", found ", error.found));
    }
    row = (row + 1) % batch_size;
    begin = end + 1;
  }
  return absl::OkStatus();
}

absl::Status ReadAll(const Dataset& dataset, int64_t batch_size, bool sequential, Batch* batch) {
  const int64_t count = dataset.num_records();
  const RecordOrder order(count, /*seed=*/1, /*epoch=*/0, sequential);
  std::vector<int64_t> records;
  for (int64_t begin = 0; begin < count; begin += batch_size) {
    records.clear();
    for (int64_t i = begin; i < std::min(begin + batch_size, count); ++i) {
      records.push_back(order.Record(i));
    }
    RETURN_IF_ERROR(dataset.Read(records, batch));
  }
  return absl::OkStatus();
}

// The records of a dataset as a columnar file.
absl::StatusOr<std::unique_ptr<Dataset>> WriteColumnar(const Dataset& records,
                                                       const RecordSchema& schema,
                                                       const std::string& path) {
  FileSystem* const files = FileSystem::Real();
  RETURN_IF_ERROR(files->Remove(path));
  RETURN_IF_ERROR(WriteColumnarFile(records, schema, path, files));
  ASSIGN_OR_RETURN(const std::shared_ptr<const ReadableRecords> set,
                   OpenColumnarRecords({path}, schema, files));
  return NewFileDataset(set, 0, set->size());
}

// Sets the goal of columnar records that are read in order by that of lines.
void SetColumnarGoal(std::vector<MeasuredLines>* all) {
  const auto named = [all](absl::string_view name) {
    return std::find_if(all->begin(), all->end(),
                        [name](const MeasuredLines& one) { return one.operation == name; });
  };
  named(kColumnarInOrder)->goal = kColumnarGoal * named(kInOrder)->gigabytes.median;
}

absl::StatusOr<std::vector<MeasuredLines>> MeasureInTurns(
    const LineFile& subject, double bytes, double lines, int repeat,
    const std::vector<Operation>& operations) {
  std::vector<std::vector<double>> gigabytes(operations.size()), records(operations.size());
  for (int i = -1; i < repeat; ++i) {
    for (size_t k = 0; k < operations.size(); ++k) {
      const double begin = CoreSeconds();
      RETURN_IF_ERROR(operations[k].run());
      const double seconds = CoreSeconds() - begin;
      if (i < 0) continue;  // the first one touches the memory
      gigabytes[k].push_back(bytes / seconds / 1e9);
      records[k].push_back(lines / seconds / 1e6);
    }
  }
  std::vector<MeasuredLines> all;
  for (size_t k = 0; k < operations.size(); ++k) {
    all.push_back({subject.name, operations[k].name, SpreadOf(gigabytes[k]), SpreadOf(records[k]),
                   operations[k].goal});
  }
  return all;
}

}  // namespace

absl::StatusOr<std::vector<MeasuredLines>> Measure(const LineFile& subject, int64_t batch,
                                                   int repeat) {
  ASSIGN_OR_RETURN(std::string content, ReadFile(subject.path));
  if (content.empty() || content.back() != '\n') content.push_back('\n');
  const int64_t lines = CountLines(content);
  const std::unique_ptr<const RecordFormat> format = subject.new_format();
  ASSIGN_OR_RETURN(const std::shared_ptr<const FileRecords> records,
                   FileRecords::Open({subject.path}, subject.new_format(), 0, FileSystem::Real()));
  const std::unique_ptr<Dataset> dataset = NewFileDataset(records, 0, records->size());
  ASSIGN_OR_RETURN(const std::unique_ptr<Dataset> columnar,
                   WriteColumnar(*dataset, format->schema(), subject.columnar));
  ASSIGN_OR_RETURN(const std::unique_ptr<RandomAccessFile> file,
                   FileSystem::Real()->OpenForRead(subject.path));
  const auto expect_lines = [lines](int64_t found) {
    return found == lines ? absl::OkStatus() : absl::InternalError("another number of lines");
  };
  Batch parsed, in_order, at_random;
  const std::vector<Operation> operations = {
      {"memchr", [&] { return expect_lines(CountLines(content)); }},
      {"parse", [&] { return ParseAll(content, *format, batch, &parsed); }, subject.goal},
      {"index",
       [&]() -> absl::Status {
         ASSIGN_OR_RETURN(const RecordIndex index, format->framing().BuildIndex(*file));
         return expect_lines(index.num_records);
       }},
      {kInOrder, [&] { return ReadAll(*dataset, batch, true, &in_order); }},
      {"at random", [&] { return ReadAll(*dataset, batch, false, &at_random); }},
      {kColumnarInOrder, [&] { return ReadAll(*columnar, batch, true, &in_order); }},
      {"columnar, at random", [&] { return ReadAll(*columnar, batch, false, &at_random); }},
  };
  ASSIGN_OR_RETURN(std::vector<MeasuredLines> all,
                   MeasureInTurns(subject, static_cast<double>(content.size()),
                                  static_cast<double>(lines), repeat, operations));
  SetColumnarGoal(&all);
  return all;
}

}  // namespace keelson::bench
