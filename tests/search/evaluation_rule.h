// What must be true of the evaluations of a job's snapshots.
#ifndef KEELSON_TESTS_SEARCH_EVALUATION_RULE_H_
#define KEELSON_TESTS_SEARCH_EVALUATION_RULE_H_

#include <cstdint>
#include <map>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "evaluator/metrics_log.h"

namespace keelson {

// Each evaluation belongs to a snapshot that was committed, with its step and its values. No
// snapshot is scored twice, unless the first one's claim may have ended, or storage kept claims and
// evaluations from being seen. Not thread-safe.
class EvaluationRule {
 public:
  // A snapshot was committed, of which an evaluation finds this loss.
  void NoteSnapshot(uint64_t id, int64_t step, double loss) { snapshots_[id] = {step, loss}; }
  // From now on evaluators may not see what the others have written.
  void NoteTrouble() { trouble_ = true; }

  // What is wrong with an evaluation that was just made durable; empty: nothing.
  std::string Add(const EvaluationRecord& record);
  // What is wrong with an acknowledgement that the chief is to get.
  std::string CheckAcknowledged(int64_t step, uint64_t id) const;
  // What is wrong with the file of a job that has ended with this snapshot.
  static std::string CheckEnd(absl::string_view metrics_file, int64_t step, uint64_t id);

 private:
  struct Snapshot {
    int64_t step = 0;
    double loss = 0;
  };

  std::map<uint64_t, Snapshot> snapshots_;  // by id
  std::map<uint64_t, absl::Time> begun_;    // the last evaluation of each
  bool trouble_ = false;
};

}  // namespace keelson

#endif  // KEELSON_TESTS_SEARCH_EVALUATION_RULE_H_
