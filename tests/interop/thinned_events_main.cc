// thinned_events DIRECTORY STEPS: writes the event files of a long run, much shortened, as a task
// does whose files are full and are thinned meanwhile. The scalar "loss" of each step is the step.
#include <cstdint>
#include <iostream>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/numbers.h"
#include "core/base/clock.h"
#include "core/base/exit_code.h"
#include "core/base/file_system.h"
#include "core/base/status_macros.h"
#include "core/summary/event_writer.h"

namespace keelson {
namespace {

constexpr EventLimits kShortLimits = {.file_bytes = 4000, .total_bytes = 32'000, .files = 1000};

absl::Status WriteRun(const std::string& directory, int64_t steps) {
  ASSIGN_OR_RETURN(const std::unique_ptr<EventWriter> writer,
                   EventWriter::Create(directory, Clock::Real(), FileSystem::Real(),
                                       kTensorBoardEvents, kShortLimits));
  for (int64_t step = 1; step <= steps; ++step) {
    RETURN_IF_ERROR(writer->AddScalars(step, {{"loss", static_cast<double>(step)}}));
  }
  RETURN_IF_ERROR(writer->AddSessionEnd(/*success=*/true));
  return writer->Flush();
}

}  // namespace
}  // namespace keelson

int main(int argc, char** argv) {
  int64_t steps = 0;
  if (argc != 3 || !absl::SimpleAtoi(argv[2], &steps)) {
    std::cerr << "usage: thinned_events DIRECTORY STEPS\n";
    return keelson::kExitPermanent;
  }
  const absl::Status status = keelson::WriteRun(argv[1], steps);
  if (!status.ok()) std::cerr << status << "\n";
  return keelson::ExitCodeFor(status);
}
