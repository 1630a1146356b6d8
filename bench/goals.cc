#include "bench/goals.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace keelson::bench {
namespace {

double Divide(double a, double b) { return b > 0 ? a / b : 0; }

class GoalChecker : public GoalList {
 public:
  explicit GoalChecker(const std::vector<Result>& results) : results_(results) {}

  // The first result of that kind, of one server and one worker.
  const Result* Find(const std::string& name, Direction direction, Handler handler) const {
    return Find(name, direction, handler, 1, 1);
  }
  const Result* Find(const std::string& name, Direction direction, Handler handler, int servers,
                     int workers) const {
    for (const Result& result : results_) {
      const Scenario& s = result.scenario;
      if (s.name == name && s.direction == direction && s.handler == handler &&
          s.wire == Wire::kFloat32 && s.servers == servers && s.workers == workers) {
        return &result;
      }
    }
    return nullptr;
  }

 private:
  const std::vector<Result>& results_;
};

void CheckRawSocket(GoalChecker* check) {
  struct Goal {
    Direction direction;
    Handler handler;
    double ratio;
  };
  const std::pair<const char*, double> scenarios[] = {
      {"message-4MB", 0.0}, {"model-100MB", 0.1}, {"model-1GB", 0.1}};
  for (const auto& [name, allowance] : scenarios) {
    for (const Goal& goal : {Goal{Direction::kPull, Handler::kSgd, 0.9},
                             Goal{Direction::kPush, Handler::kDiscard, 0.9},
                             Goal{Direction::kPush, Handler::kSgd, 0.8},
                             Goal{Direction::kPush, Handler::kAdam, 0.5}}) {
      const Result* result = check->Find(name, goal.direction, goal.handler);
      if (result == nullptr) continue;
      check->AtLeast(
          absl::StrCat(name, " ", Name(goal.direction), " ", Name(goal.handler), " / raw socket"),
          goal.ratio - allowance,
          Divide(result->measured.goodput.median, result->limits.raw_socket.goodput.median));
    }
  }
}

void CheckSmallPush(GoalChecker* check) {
  const Result* result = check->Find("message-64KB", Direction::kPush, Handler::kSgd);
  if (result == nullptr) return;
  // 2 GB/s where the raw socket does 5.
  check->AtLeast("message-64KB push sgd / raw socket", 0.4,
                 Divide(result->measured.goodput.median, result->limits.raw_socket.goodput.median));
}

void CheckPsLite(GoalChecker* check) {
  struct Goal {
    const char* name;
    double gbytes_per_s;  // times ps-lite's best over ZeroMQ
    double ps_lite;
  };
  for (const Goal& goal : {Goal{"message-4MB", 4, 0.97}, Goal{"message-64KB", 8, 0.27}}) {
    for (const Direction direction : {Direction::kPush, Direction::kPull}) {
      const Result* result = check->Find(goal.name, direction, Handler::kSgd);
      if (result == nullptr) continue;
      check->AtLeast(
          absl::StrCat(goal.name, " ", Name(direction), " / ps-lite's ", goal.ps_lite, " GB/s"),
          goal.gbytes_per_s, result->measured.goodput.median / goal.ps_lite);
    }
  }
}

void CheckBaseline(GoalChecker* check) {
  for (const auto& [name, ratio] :
       {std::pair("message-4MB", 2.5), std::pair("message-64KB", 1.5)}) {
    for (const Direction direction : {Direction::kPush, Direction::kPull}) {
      const Result* result = check->Find(name, direction, Handler::kSgd);
      if (result == nullptr) continue;
      const std::string what = absl::StrCat(name, " ", Name(direction));
      check->AtLeast(absl::StrCat(what, " / naive"), ratio,
                     Divide(result->measured.goodput.median, result->baseline.goodput.median));
      if (result->measured.server_cpu.median == 0) continue;  // of servers elsewhere: not known
      check->AtLeast(absl::StrCat(what, ": naive's cpu / own"), ratio,
                     Divide(result->baseline.cpu(), result->measured.cpu()));
    }
  }
}

void CheckSteps(GoalChecker* check) {
  const Result* result = check->Find("model-180KB", Direction::kPushPull, Handler::kSgd);
  if (result == nullptr) return;
  check->AtMost("model-180KB pushpull p50 / empty RPC's p50", 3,
                Divide(result->measured.p50_us, result->limits.empty_rpc.p50_us));
}

void CheckScaling(GoalChecker* check) {
  for (const Direction direction : {Direction::kPush, Direction::kPull}) {
    for (const int workers : {1, 2, 4, 8}) {
      const Result* one = check->Find("scaling", direction, Handler::kSgd, 1, workers);
      for (const auto& [servers, ratio] : {std::pair(2, 1.0), std::pair(4, 0.9)}) {
        const Result* more = check->Find("scaling", direction, Handler::kSgd, servers, workers);
        if (one == nullptr || more == nullptr) continue;
        check->AtLeast(
            absl::StrCat(Name(direction), " of ", workers, " workers: ", servers, " servers / one"),
            ratio, Divide(more->measured.goodput.median, one->measured.goodput.median));
      }
    }
  }
}

void CheckManyWorkers(GoalChecker* check) {
  const Result* result = check->Find("workers-100", Direction::kPushPull, Handler::kSgd, 1, 4);
  if (result == nullptr) return;
  check->AtMost("100 workers: failures", 0, static_cast<double>(result->measured.failures));
  check->AtMost("100 workers: fastest / slowest", 2, result->measured.unfairness);
}

void CheckMemory(GoalChecker* check) {
  const Result* result = check->Find("model-1GB", Direction::kPushPull, Handler::kSgd);
  if (result == nullptr) return;
  const Memory& memory = result->memory;
  const auto values = static_cast<double>(memory.values);
  check->AtMost("1 GB model: server's memory / values and slots", 1.15,
                Divide(static_cast<double>(memory.server_resident),
                       values + static_cast<double>(memory.slots)));
  check->AtMost("1 GB model: worker's memory / values", 2.3,
                Divide(static_cast<double>(memory.worker_resident), values));
}

}  // namespace

void GoalList::AtLeast(const std::string& goal, double wanted, double found) {
  outcomes_.push_back({goal, absl::StrFormat(">= %.2f", wanted), found, found >= wanted});
}

void GoalList::AtMost(const std::string& goal, double wanted, double found) {
  outcomes_.push_back({goal, absl::StrFormat("<= %.2f", wanted), found, found <= wanted});
}

std::vector<GoalOutcome> CheckGoals(const std::vector<Result>& results,
                                    const std::optional<IdleCpu>& idle) {
  GoalChecker check(results);
  CheckRawSocket(&check);
  CheckSmallPush(&check);
  CheckPsLite(&check);
  CheckBaseline(&check);
  CheckSteps(&check);
  CheckScaling(&check);
  CheckManyWorkers(&check);
  CheckMemory(&check);
  if (idle.has_value()) {
    check.AtMost("idle server: % of a core", 1, idle->server * 100);
    check.AtMost("idle worker: % of a core", 1, idle->worker * 100);
  }
  return check.Take();
}

Table GoalTable(const std::vector<GoalOutcome>& outcomes) {
  Table table{"Goals", {"goal", "wanted", "found", "met"}, {}};
  for (const GoalOutcome& outcome : outcomes) {
    table.rows.push_back({outcome.goal, outcome.wanted, absl::StrFormat("%.2f", outcome.found),
                          outcome.met ? "yes" : "no"});
  }
  return table;
}

}  // namespace keelson::bench
