// Keeps commits of rounds and cuts of all servers apart.
#ifndef KEELSON_CHIEF_SERVERS_ROUND_GATE_H_
#define KEELSON_CHIEF_SERVERS_ROUND_GATE_H_

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "core/base/mutex.h"

namespace keelson {

// One round or cut at a time; a cut that waits goes before the next round. Thread-safe.
class RoundGate {
 public:
  // While it exists, a round is being committed.
  class Round {
   public:
    explicit Round(RoundGate* gate) : gate_(gate) { gate_->BeginRound(); }
    ~Round() { gate_->End(); }
    Round(const Round&) = delete;
    Round& operator=(const Round&) = delete;

   private:
    RoundGate* const gate_;
  };

  // Calls `cut` while no round is being committed, and returns its status. UNAVAILABLE: one was for
  // longer than `patience` (real time), since a server does not answer.
  template <typename Cut>
  absl::Status WithoutRounds(absl::Duration patience, Cut cut) {
    if (!BeginCut(patience)) {
      return absl::UnavailableError("a step is being committed; a server does not answer");
    }
    const absl::Status status = cut();
    End();
    return status;
  }

 private:
  void BeginRound();
  bool BeginCut(absl::Duration patience);
  void End();

  Mutex mu_;
  CondVar changed_;
  bool busy_ ABSL_GUARDED_BY(mu_) = false;
  bool cut_waits_ ABSL_GUARDED_BY(mu_) = false;
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_ROUND_GATE_H_
