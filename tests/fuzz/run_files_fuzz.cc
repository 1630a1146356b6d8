// libFuzzer program for the small files of a model directory. The kind of input says which.

#include <google/protobuf/stubs/logging.h>

#include "core/base/clock.h"
#include "core/base/file_system_testing.h"
#include "core/checkpoint/checkpoint_directory.h"
#include "core/checkpoint/done_marker.h"
#include "core/checkpoint/job_file.h"
#include "core/checkpoint/snapshot_lease.h"
#include "core/summary/tf_record.h"
#include "dashboard/runs/evaluations.h"
#include "dashboard/runs/event_tail.h"
#include "dashboard/runs/json.h"
#include "dashboard/runs/run_state.h"
#include "evaluator/metrics_log.h"
#include "evaluator/snapshot_claims.h"
#include "keelson/v1/event.pb.h"
#include "tests/fuzz/fuzz_program.h"
#include "tests/fuzz/fuzzing.h"

namespace keelson {
namespace {

enum Kind : char {
  kState,
  kDone,
  kLease,
  kClaim,
  kEvaluations,
  kStatus,
  kEvents,
  kEvent,
  kJob,
  kNumKinds,
};

void TestState(const std::string& text) {
  MemoryFileSystem file_system;
  file_system.SetContent("/checkpoint", text);
  const CheckpointDirectory directory(&file_system, "/", Clock::Real());
  const auto named = directory.ListNamed();
  if (!named.ok()) return;
  Check(!named->empty(), "a state file names a snapshot");
  Check(directory.List().ok(), "those that exist can be listed");
}

void TestDone(const std::string& text) {
  MemoryFileSystem file_system;
  file_system.SetContent("/DONE", text);
  const auto marker = ReadDoneMarker("/", &file_system);
  if (!marker.ok()) return;
  Check(marker->has_value(), "a marker that exists is found");
  Check(WriteDoneMarker(&file_system, "/", **marker).ok(), "it can be written");
  Check(*ReadDoneMarker("/", &file_system) == *marker, "and is the same");
}

void TestJob(const std::string& text) {
  const auto job = ParseJobFile("JOB", text);
  if (!job.ok()) return;
  const auto again = ParseJobFile("JOB", FormatJobFile(*job));
  Check(again.ok() && again->SerializeAsString() == job->SerializeAsString(),
        "a job file that is written again says the same");
}

void TestLease(const std::string& text) {
  MemoryFileSystem file_system;
  file_system.SetContent("/model.ckpt-7.lease-1", text);
  const auto leases = ListLeases(&file_system, "/");
  Check(leases.ok() && leases->size() == 1, "a lease that is damaged is one without effect");
}

void TestClaim(const std::string& text) {
  const std::string path = InputFile("7.1", text);
  const SnapshotClaims claims(path.substr(0, path.rfind('/')), "me", Clock::Real(),
                              FileSystem::Real(), absl::InfiniteDuration());
  Check(claims.HeldByOthers().ok(), "a claim that is damaged is one of somebody");
}

void TestEvaluations(absl::string_view text) {
  if (const auto record = ParseEvaluationRecord(text)) {
    const auto again = ParseEvaluationRecord(FormatEvaluationRecord(*record));
    Check(again.has_value() && again->step == record->step &&
              again->metrics.size() == record->metrics.size(),
          "a record that is written again says the same");
  }
  MemoryFileSystem file_system;
  file_system.SetContent("/metrics.jsonl", std::string(text));
  EvaluationTail tail(&file_system, "/metrics.jsonl");
  std::vector<Evaluation> evaluations;
  while (tail.Poll(100, &evaluations)) {
  }
  Check(evaluations.size() <= text.size(), "evaluations are lines");
}

void TestStatus(absl::string_view text) {
  const std::optional<Json> status = ParseJson(text);
  if (!status.has_value()) return;
  Check(!DeriveRunState(*status, absl::ZeroDuration(), false).state.empty(), "a run has a state");
  StatusAge age(Clock::Real());
  age.Note(*status);
  Check(ParseJson(DumpJson(*status)).has_value(), "what is written again is JSON");
}

void TestEvents(absl::string_view bytes) {
  MemoryFileSystem file_system;
  file_system.SetContent("/events.out.tfevents.1", std::string(bytes));
  EventTail tail(&file_system, "/");
  size_t points = 0;
  while (tail.Poll(100, [&](absl::string_view, const SeriesPoint&) { ++points; })) {
  }
  Check(points <= bytes.size(), "points are parts of the file");
}

}  // namespace

std::vector<std::string> Seeds() {
  v1::Event event;
  event.set_step(7);
  v1::Summary::Value* const value = event.mutable_summary()->add_value();
  value->set_tag("loss");
  value->set_simple_value(0.5f);
  const std::string bytes = event.SerializeAsString();
  std::vector<std::string> seeds;
  AddSeeds(kState,
           {R"(model_checkpoint_path: "model.ckpt-7" all_model_checkpoint_paths: "model.ckpt-7"
all_model_checkpoint_timestamps: 1.5e9 last_preserved_timestamp: 1.5e9)"},
           &seeds);
  AddSeeds(kDone, {R"({"step":7,"config_hash":"00000000000000ff"})"}, &seeds);
  AddSeeds(kLease, {R"({"expires":"2026-01-02T03:04:05+00:00","holder":"worker-1"})"}, &seeds);
  AddSeeds(kClaim,
           {R"({"begun":"2026-01-02T03:04:05+00:00","expires":"2126-01-02T03:04:05+00:00",)"
            R"("holder":"evaluator-1","id":7})"},
           &seeds);
  AddSeeds(kEvaluations,
           {R"({"step":7,"wall_time":1.5e9,"loss":0.5,"accuracy":null,"examples":9,"seconds":1})"
            "\n"},
           &seeds);
  AddSeeds(
      kStatus,
      {R"({"phase":"TRAINING","time":1.5e9,"step":7,"servers":[{"task":"ps-0","state":"lost"}],)"
       R"("waiting_for":["ps-1"],"end_reason":"","error":""})"},
      &seeds);
  AddSeeds(kEvents, {EncodeTfRecord(bytes) + EncodeTfRecord(bytes)}, &seeds);
  AddSeeds(kEvent, {bytes}, &seeds);
  AddSeeds(kJob,
           {"format: 1\nterm: 3\nowner: 17\ntask: \"chief-0\"\npid: 4711\nlease_seconds: 20\n"
            "released: true\nconfig: \"train { }\"\n"},
           &seeds);
  return seeds;
}

void TestInput(uint8_t kind, absl::string_view input) {
  const google::protobuf::LogSilencer silencer;  // about texts that are not UTF-8
  const std::string text(input);
  switch (kind % kNumKinds) {
    case kState:
      return TestState(text);
    case kDone:
      return TestDone(text);
    case kLease:
      return TestLease(text);
    case kClaim:
      return TestClaim(text);
    case kEvaluations:
      return TestEvaluations(text);
    case kStatus:
      return TestStatus(text);
    case kEvents:
      return TestEvents(text);
    case kJob:
      return TestJob(text);
    default:
      return TestEvents(EncodeTfRecord(text));
  }
}

}  // namespace keelson
