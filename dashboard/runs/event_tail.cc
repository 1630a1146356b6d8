#include "dashboard/runs/event_tail.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "core/base/crc32c.h"
#include "core/base/file.h"
#include "keelson/v1/event.pb.h"

namespace keelson {
namespace {

// TensorBoard's, and those for the dashboard alone (core/summary/event_writer.h).
constexpr absl::string_view kEventFiles[] = {"tfevents", "events.keelson."};
constexpr size_t kLengthBytes = sizeof(uint64_t);
constexpr size_t kCrcBytes = sizeof(uint32_t);
constexpr size_t kHeaderBytes = kLengthBytes + kCrcBytes;
constexpr uint64_t kMaxRecordBytes = uint64_t{64} << 20;
// On a network file system zeros may be visible before the written bytes.
constexpr int kAttempts = 10;

template <typename T>
T Load(absl::string_view bytes) {
  T value;
  std::memcpy(&value, bytes.data(), sizeof(value));
  return value;
}

bool CrcFits(absl::string_view data, absl::string_view crc) {
  return MaskCrc32c(Crc32c(data)) == Load<uint32_t>(crc);
}

// The number with the fewest digits that is this float: 0.1f is shown as 0.1.
double ShortestDecimal(float value) {
  if (!std::isfinite(value)) return value;
  char text[32];
  const std::to_chars_result printed = std::to_chars(text, text + sizeof(text), value);
  double decimal = value;
  std::from_chars(text, printed.ptr, decimal);
  return decimal;
}

bool IsEventFile(absl::string_view name) {
  return std::any_of(std::begin(kEventFiles), std::end(kEventFiles),
                     [name](absl::string_view part) { return absl::StrContains(name, part); });
}

void TakeEvent(absl::string_view record, EventTail::TakeScalar take) {
  v1::Event event;
  if (!event.ParseFromArray(record.data(), static_cast<int>(record.size()))) return;
  for (const v1::Summary::Value& value : event.summary().value()) {
    if (value.value_case() != v1::Summary::Value::kSimpleValue) continue;
    take(value.tag(), {event.step(), event.wall_time(), ShortestDecimal(value.simple_value())});
  }
}

}  // namespace

bool EventTail::Poll(size_t max_bytes, TakeScalar take) {
  trouble_ = absl::OkStatus();
  FindFiles();
  for (auto& entry : files_) {
    File& file = entry.second;
    if (file.damaged) {
      NoteDamage(&file, 0);
    } else if (PollFile(max_bytes, &file, take)) {
      return true;
    }
  }
  return false;
}

void EventTail::FindFiles() {
  const absl::StatusOr<std::vector<std::string>> names = file_system_->List(directory_);
  if (!names.ok()) {
    if (!absl::IsNotFound(names.status())) trouble_.Update(names.status());
    return;
  }
  for (const std::string& name : *names) {
    if (!IsEventFile(name) || files_.contains(name)) continue;
    files_.emplace(name, File{FileTail(file_system_, JoinPath(directory_, name))});
  }
}

bool EventTail::PollFile(size_t max_bytes, File* file, TakeScalar take) {
  const absl::StatusOr<bool> more = file->tail.Read(max_bytes);
  if (!more.ok()) {
    if (!absl::IsNotFound(more.status())) trouble_.Update(more.status());
    return false;
  }
  size_t consumed = 0;
  while (TakeRecord(file, &consumed, take)) {
  }
  file->tail.Consume(consumed);
  // A record is read again only after the writer has had some time.
  if (file->failures > 0) file->tail.ReadAgain();
  return *more && file->failures == 0;
}

bool EventTail::TakeRecord(File* file, size_t* consumed, TakeScalar take) {
  const absl::string_view rest = absl::string_view(file->tail.pending()).substr(*consumed);
  if (rest.size() < kHeaderBytes) return false;
  const auto length = Load<uint64_t>(rest);
  if (!CrcFits(rest.substr(0, kLengthBytes), rest.substr(kLengthBytes)) ||
      length > kMaxRecordBytes) {
    NoteDamage(file, *consumed);
    return false;
  }
  if (rest.size() < kHeaderBytes + length + kCrcBytes) return false;
  const absl::string_view data = rest.substr(kHeaderBytes, length);
  if (!CrcFits(data, rest.substr(kHeaderBytes + length))) {
    NoteDamage(file, *consumed);
    return false;
  }
  file->failures = 0;
  TakeEvent(data, take);
  *consumed += kHeaderBytes + length + kCrcBytes;
  return true;
}

void EventTail::NoteDamage(File* file, size_t offset) {
  if (++file->failures < kAttempts && !file->damaged) return;
  file->damaged = true;
  trouble_.Update(
      absl::DataLossError(absl::StrCat(file->tail.path(), ": record at byte ",
                                       file->tail.position() + offset, ": checksum mismatch")));
}

}  // namespace keelson
