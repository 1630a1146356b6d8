#include "core/summary/event_thinning.h"

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/summary/tf_record.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

constexpr char kThinned[] = ".thinned";
// TensorBoard takes every name with "tfevents" in it for an event file.
constexpr char kTemporary[] = "thinning.tempstate";
constexpr size_t kNewestFiles = 2;
constexpr int kMaxShift = 62;
// More than the first record of Keelson's files takes.
constexpr uint64_t kFirstRecordBytes = 256;

enum class EventClass { kScalar, kHistogram, kOther, kAlways, kNever };

// What decides whether an event stays; the event itself is read again for that.
struct Record {
  int64_t bytes = 0;
  int64_t step = 0;
  uint32_t series = 0;  // tells apart what is thinned by itself
  EventClass event_class = EventClass::kNever;
  bool starts_session = false;
};

EventClass ClassOf(const v1::Event& event) {
  if (!event.has_summary() || event.summary().value_size() == 0) return EventClass::kAlways;
  switch (event.summary().value(0).value_case()) {
    case v1::Summary::Value::kSimpleValue:
      return EventClass::kScalar;
    case v1::Summary::Value::kHisto:
      return EventClass::kHistogram;
    default:
      return EventClass::kOther;
  }
}

// Makes records of events, in their order.
class Catalogue {
 public:
  void Add(const std::string& bytes) {
    Record record;
    record.bytes = static_cast<int64_t>(bytes.size());
    v1::Event event;
    // What no reader can read stays away, and the version, which the new file has of its own.
    if (event.ParseFromString(bytes) && event.file_version().empty()) {
      record.event_class = ClassOf(event);
      record.step = event.step();
      record.starts_session = event.session_log().status() == v1::SessionLog::START;
      record.series = SeriesOf(record.event_class, event);
    }
    records_.push_back(record);
  }

  const std::vector<Record>& records() const { return records_; }

 private:
  uint32_t SeriesOf(EventClass event_class, const v1::Event& event) {
    if (event_class == EventClass::kAlways) return 0;
    const std::pair<EventClass, std::string> name(event_class, event.summary().value(0).tag());
    return series_.try_emplace(name, static_cast<uint32_t>(series_.size())).first->second;
  }

  std::map<std::pair<EventClass, std::string>, uint32_t> series_;
  std::vector<Record> records_;
};

// Which records stay when each range of 2^shift steps keeps its first event.
std::vector<bool> Select(const std::vector<Record>& records, EventClass event_class, int shift) {
  struct Series {
    std::optional<int64_t> range;
    std::optional<size_t> last;
  };
  std::vector<bool> stays(records.size(), false);
  std::vector<Series> all_series;
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i];
    if (record.starts_session && event_class != EventClass::kOther) {
      for (Series& series : all_series) series.range = std::nullopt;
    }
    if (record.event_class != event_class) continue;
    if (record.series >= all_series.size()) all_series.resize(record.series + 1);
    Series& series = all_series[record.series];
    const int64_t range = record.step >> shift;
    stays[i] = series.range != range;
    series.range = range;
    series.last = i;
  }
  for (const Series& series : all_series) {
    if (series.last.has_value()) stays[*series.last] = true;
  }
  return stays;
}

int64_t BytesOf(const std::vector<Record>& records, const std::vector<bool>& stays) {
  const auto frame = static_cast<int64_t>(EncodeTfRecord("").size());
  int64_t bytes = 0;
  for (size_t i = 0; i < records.size(); ++i) {
    if (stays[i]) bytes += frame + records[i].bytes;
  }
  return bytes;
}

// Thins one class of events, more with each step.
class Thinning {
 public:
  Thinning(const std::vector<Record>* records, EventClass event_class)
      : records_(records), event_class_(event_class) {
    Apply();
  }

  int64_t bytes() const { return bytes_; }
  bool Keeps(size_t i) const { return stays_[i]; }
  bool CanThin() const { return shift_ < kMaxShift; }
  void Thin() {
    ++shift_;
    Apply();
  }

 private:
  void Apply() {
    stays_ = Select(*records_, event_class_, shift_);
    bytes_ = BytesOf(*records_, stays_);
  }

  const std::vector<Record>* const records_;
  const EventClass event_class_;
  int shift_ = 0;
  std::vector<bool> stays_;
  int64_t bytes_ = 0;
};

// Which records stay, so that those that are thinned take at most this many bytes, if they can.
std::vector<bool> Kept(const std::vector<Record>& records, int64_t max_bytes) {
  Thinning scalars(&records, EventClass::kScalar);
  Thinning histograms(&records, EventClass::kHistogram);
  // A range that has all steps: the first and the last.
  const std::vector<bool> others = Select(records, EventClass::kOther, kMaxShift);
  while (scalars.bytes() + histograms.bytes() > max_bytes) {
    const bool prefers_scalars = scalars.bytes() >= histograms.bytes();
    Thinning* const larger = prefers_scalars ? &scalars : &histograms;
    Thinning* const smaller = prefers_scalars ? &histograms : &scalars;
    if (!larger->CanThin() && !smaller->CanThin()) break;
    (larger->CanThin() ? larger : smaller)->Thin();
  }
  std::vector<bool> kept(records.size());
  for (size_t i = 0; i < records.size(); ++i) {
    kept[i] = records[i].event_class == EventClass::kAlways || others[i] || scalars.Keeps(i) ||
              histograms.Keeps(i);
  }
  return kept;
}

// One thinning of one directory.
class ThinnedDirectory {
 public:
  ThinnedDirectory(std::string directory, FileSystem* file_system)
      : directory_(std::move(directory)), file_system_(file_system) {}

  absl::Status FindFiles(const std::string& kind) {
    ASSIGN_OR_RETURN(const std::vector<std::string> names, file_system_->List(directory_));
    for (const std::string& name : names) {
      if (!absl::StartsWith(name, kind + ".")) continue;
      ASSIGN_OR_RETURN(const bool own, IsOwn(name));
      if (own) names_.push_back(name);
    }
    return absl::OkStatus();
  }

  // What comes before a thinned file is in it.
  absl::Status RemoveReplaced() {
    size_t replaced = 0;
    for (size_t i = 0; i < names_.size(); ++i) {
      if (absl::EndsWith(names_[i], kThinned)) replaced = i;
    }
    for (size_t i = 0; i < replaced; ++i) RETURN_IF_ERROR(file_system_->Remove(Path(names_[i])));
    names_.erase(names_.begin(), names_.begin() + static_cast<std::ptrdiff_t>(replaced));
    return absl::OkStatus();
  }

  absl::StatusOr<bool> Exceeds(const EventLimits& limits) const {
    if (names_.size() <= kNewestFiles) return false;
    int64_t bytes = 0;
    for (size_t i = 0; i < names_.size() - kNewestFiles; ++i) {
      ASSIGN_OR_RETURN(const auto file, file_system_->OpenForRead(Path(names_[i])));
      bytes += static_cast<int64_t>(file->size());
    }
    return bytes > limits.total_bytes || names_.size() - kNewestFiles > limits.files;
  }

  absl::Status Replace(int64_t max_bytes) {
    const size_t sources = names_.size() - kNewestFiles;
    const std::string name = absl::StrCat(names_[sources - 1], kThinned);
    // Hosts whose files are of one second: the next file would count as replaced.
    if (names_[sources] < name) return absl::OkStatus();
    Catalogue catalogue;
    std::string version;
    RETURN_IF_ERROR(Visit(sources, [&](const std::string& bytes) {
      if (version.empty()) version = bytes;
      catalogue.Add(bytes);
      return absl::OkStatus();
    }));
    RETURN_IF_ERROR(Write(name, version, sources, Kept(catalogue.records(), max_bytes)));
    return RemoveSources(sources);
  }

 private:
  absl::StatusOr<bool> IsOwn(const std::string& name) const {
    ASSIGN_OR_RETURN(const auto file, file_system_->OpenForRead(Path(name)));
    std::string head(std::min(file->size(), kFirstRecordBytes), '\0');
    RETURN_IF_ERROR(file->Read(0, head.size(), head.data()));
    const std::vector<std::string> records = UndamagedTfRecords(head);
    v1::Event first;
    return !records.empty() && first.ParseFromString(records[0]) &&
           first.source_metadata().writer() == kEventFileWriter;
  }

  std::string Path(const std::string& name) const { return JoinPath(directory_, name); }

  // Calls `visit` for the records of the first files, in their order, those before any damage. One
  // file is in memory at a time.
  absl::Status Visit(size_t sources,
                     absl::FunctionRef<absl::Status(const std::string& bytes)> visit) const {
    for (size_t i = 0; i < sources; ++i) {
      ASSIGN_OR_RETURN(const std::vector<std::string> found,
                       ReadUndamagedTfRecords(Path(names_[i]), file_system_));
      for (const std::string& bytes : found) RETURN_IF_ERROR(visit(bytes));
    }
    return absl::OkStatus();
  }

  // Writes those records of the first files that stay.
  absl::Status Write(const std::string& name, const std::string& version, size_t sources,
                     const std::vector<bool>& stays) {
    const std::string temporary = Path(kTemporary);
    ASSIGN_OR_RETURN(const std::unique_ptr<AppendFile> file,
                     file_system_->OpenForAppend(temporary, /*truncate=*/true));
    RETURN_IF_ERROR(file->Append(EncodeTfRecord(version)));
    size_t next = 0;
    RETURN_IF_ERROR(Visit(sources, [&](const std::string& bytes) {
      const size_t i = next++;
      return i < stays.size() && stays[i] ? file->Append(EncodeTfRecord(bytes)) : absl::OkStatus();
    }));
    if (next != stays.size()) {
      return absl::UnavailableError(absl::StrCat(directory_, ": event files have changed"));
    }
    RETURN_IF_ERROR(file->Close());
    RETURN_IF_ERROR(file_system_->Rename(temporary, Path(name)));
    return file_system_->SyncDirectory(directory_);
  }

  absl::Status RemoveSources(size_t sources) {
    for (size_t i = 0; i < sources; ++i) RETURN_IF_ERROR(file_system_->Remove(Path(names_[i])));
    return absl::OkStatus();
  }

  const std::string directory_;
  FileSystem* const file_system_;
  std::vector<std::string> names_;  // of Keelson's event files, sorted
};

}  // namespace

absl::Status ThinEventFiles(const std::string& directory, const std::string& kind,
                            const EventLimits& limits, FileSystem* file_system) {
  ThinnedDirectory thinned(directory, file_system);
  RETURN_IF_ERROR(thinned.FindFiles(kind));
  RETURN_IF_ERROR(thinned.RemoveReplaced());
  ASSIGN_OR_RETURN(const bool exceeds, thinned.Exceeds(limits));
  return exceeds ? thinned.Replace(limits.total_bytes / 2) : absl::OkStatus();
}

}  // namespace keelson
