#include "testing/device/cuda_emulation/crash_report.h"

#include <signal.h>
#include <unistd.h>

#include <cstring>

namespace keelson::cuda_emulation {
namespace {

struct sigaction g_earlier;

// Only what a signal handler may call.
void Explain(int signal, siginfo_t*, void*) {
  constexpr char kText[] =
      "emulated CUDA: an invalid access: the host's code touched memory of a GPU, or a GPU's work "
      "touched memory that is not its own, behind an allocation or freed\n";
  static_cast<void>(!write(STDERR_FILENO, kText, sizeof(kText) - 1));
  // The access is tried again, and goes the way that it would have gone.
  sigaction(signal, &g_earlier, nullptr);
}

}  // namespace

void ReportCrashes() {
  struct sigaction action;
  std::memset(&action, 0, sizeof(action));
  action.sa_sigaction = &Explain;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, &g_earlier);
}

}  // namespace keelson::cuda_emulation
