// Snapshots that somebody has asked for, beside those that are due.
#ifndef KEELSON_CHIEF_COORDINATION_SAVE_REQUESTS_H_
#define KEELSON_CHIEF_COORDINATION_SAVE_REQUESTS_H_

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace keelson {

// Requests are numbered, and the snapshot that is begun next answers all that came before: those
// that come while one is written wait for another. A pure state machine, not thread-safe.
class SaveRequests {
 public:
  // Returns the request's number.
  uint64_t Add() { return ++newest_; }

  // Whether a snapshot has to be begun.
  bool waiting() const { return begun_ < newest_; }

  // A snapshot is begun.
  void Begin() { begun_ = newest_; }
  // Its step, or why it could not be written.
  void End(const absl::StatusOr<int64_t>& outcome) {
    ended_ = begun_;
    outcome_ = outcome;
  }

  // Nothing is written from here on until Open: this answers all requests.
  void Close(const absl::Status& why) {
    Begin();
    End(why);
    closed_ = why;
  }
  void Open() { closed_ = absl::OkStatus(); }

  // Nullopt: it is not there yet.
  std::optional<absl::StatusOr<int64_t>> AnswerTo(uint64_t number) const {
    if (number <= ended_) return outcome_;
    if (!closed_.ok()) return closed_;
    return std::nullopt;
  }

 private:
  uint64_t newest_ = 0;
  uint64_t begun_ = 0;
  uint64_t ended_ = 0;
  absl::StatusOr<int64_t> outcome_ = 0;  // of the newest that has ended
  absl::Status closed_;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_COORDINATION_SAVE_REQUESTS_H_
