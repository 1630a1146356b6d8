#include "testing/device/cuda_emulation/emulation.h"

#include "testing/device/cuda_emulation/call.h"

namespace keelson::cuda_emulation {

std::string Reset(const Options& options) { return ReplaceMachine(options); }

void FailCall(absl::string_view name, int64_t count, int error) {
  WithMachine([&](Machine* machine) { machine->AddCallFault(name, count, error); });
}

void FailExecution(int64_t count, int error) {
  WithMachine([&](Machine* machine) { machine->AddExecutionFault(count, error); });
}

int PendingFaults() {
  int pending = 0;
  WithMachine([&](Machine* machine) { pending = machine->pending_faults(); });
  return pending;
}

Statistics CurrentStatistics() {
  Statistics statistics;
  WithMachine([&](Machine* machine) { statistics = machine->statistics(); });
  return statistics;
}

std::vector<std::string> Complaints() {
  std::vector<std::string> complaints;
  WithMachine([&](Machine* machine) { complaints = machine->complaints(); });
  return complaints;
}

std::string Leaks() {
  std::string leaks;
  WithMachine([&](Machine* machine) { leaks = machine->Leaks(); });
  return leaks;
}

size_t BytesInUse(int gpu) {
  size_t bytes = 0;
  WithMachine([&](Machine* machine) { bytes = machine->gpu(gpu).arena.bytes_in_use(); });
  return bytes;
}

}  // namespace keelson::cuda_emulation
