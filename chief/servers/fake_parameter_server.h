// A parameter server for the chief's tests: keeps no values, writes real parts of snapshots, and
// fails on request.
#ifndef KEELSON_CHIEF_SERVERS_FAKE_PARAMETER_SERVER_H_
#define KEELSON_CHIEF_SERVERS_FAKE_PARAMETER_SERVER_H_

#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/client/services/parameter_control.h"
#include "gtest/gtest.h"

namespace keelson {

inline std::string FreshModelDirectory() {
  std::string path = testing::TempDir() + "/keelson_chief_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

// Thread-safe.
class FakeParameterServer : public ParameterControl {
 public:
  static constexpr uint64_t kConfigHash = 0xabc;

  // The fake writes its parts of snapshots there.
  explicit FakeParameterServer(FileSystem* file_system = FileSystem::Real())
      : file_system_(file_system) {}

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override {
    MutexLock lock(&mu_);
    initializations_.push_back(request);
    changed_.NotifyAll();
    while (initialize_blocked_) changed_.Wait(&mu_);
    if (away_) return absl::UnavailableError("connection refused");
    if (damaged_.contains(request.restore_prefix())) {
      return absl::DataLossError(absl::StrCat(request.restore_prefix(), ": bad checksum"));
    }
    shard_.set_state(v1::ShardStatus::READY);
    shard_.set_placement_fingerprint(request.placement_fingerprint());
    shard_.set_shard(request.shard());
    shard_.set_committed_round(-1);
    Refuse(request.retired_incarnations());
    return absl::OkStatus();
  }

  absl::Status Attend(const v1::AttendRequest& request, v1::ShardStatus* response) override {
    MutexLock lock(&mu_);
    ++probes_;
    RETURN_IF_ERROR(Admit());
    last_attend_ = request;
    chief_address_ = request.chief_address();
    if (!request.memory().empty() && request.memory_version() >= shard_.memory_version()) {
      shard_.set_memory(request.memory());
      shard_.set_memory_version(request.memory_version());
      ++memories_;
    }
    Refuse(request.retired_incarnations());
    *response = shard_;
    response->clear_memory();
    return absl::OkStatus();
  }

  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override {
    MutexLock lock(&mu_);
    if (away_) return absl::UnavailableError("connection refused");
    *response = shard_;
    if (!request.with_memory()) response->clear_memory();
    return absl::OkStatus();
  }

  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override {
    RETURN_IF_ERROR(BeginSnapshot());
    const int data_shard = static_cast<int>(request.data_shard());
    ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer,
                     BundleDataWriter::Create(file_system_, request.data_path(), data_shard));
    return WritePart(writer.get(), data_shard, response);
  }

  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override {
    RETURN_IF_ERROR(BeginSnapshot());
    const int data_shard = static_cast<int>(request.data_shard());
    const std::unique_ptr<BundleDataWriter> writer =
        BundleDataWriter::CreateOn(std::make_unique<SinkFile>(sink), data_shard);
    RETURN_IF_ERROR(WritePart(writer.get(), data_shard, response));
    MutexLock lock(&mu_);
    response->set_bytes_written(response->bytes_written() + unsent_bytes_);
    return absl::OkStatus();
  }

  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override {
    std::vector<v1::InitializeChunk> chunks = {first};
    while (true) {
      ASSIGN_OR_RETURN(const std::optional<v1::InitializeChunk> chunk, next());
      if (!chunk.has_value()) break;
      chunks.push_back(*chunk);
    }
    {
      MutexLock lock(&mu_);
      chunks_ = std::move(chunks);
    }
    return Initialize(first.start(), response);
  }

  absl::Status CommitRound(const v1::CommitRoundRequest& request,
                           v1::CommitRoundResponse* response) override {
    MutexLock lock(&mu_);
    commits_.push_back(request);
    changed_.NotifyAll();
    if (failing_commits_.empty()) {
      shard_.set_committed_round(request.round());
      return absl::OkStatus();
    }
    const absl::Status status = failing_commits_.front();
    failing_commits_.erase(failing_commits_.begin());
    return status;
  }

  // The process ends; the next call reaches another one.
  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override {
    MutexLock lock(&mu_);
    ++finished_;
    if (away_) return absl::UnavailableError("connection refused");
    StartAnew();
    return absl::OkStatus();
  }

  absl::Status FindChief(const v1::FindChiefRequest&, v1::FindChiefResponse*) override {
    return NotForChiefs();
  }

  // ---- Faults that a test arranges.

  void SetAway(bool away) {
    MutexLock lock(&mu_);
    away_ = away;
  }
  void SetConfigHash(uint64_t hash) {
    MutexLock lock(&mu_);
    shard_.set_config_hash(hash);
  }
  void FailSnapshots(int count) {
    MutexLock lock(&mu_);
    failing_snapshots_ = count;
  }
  // The next commits return these statuses, before commits succeed again.
  void FailCommits(const std::vector<absl::Status>& statuses) {
    MutexLock lock(&mu_);
    failing_commits_ = statuses;
  }
  // Streams of a snapshot lack this many of their bytes.
  void LoseBytes(int64_t count) {
    MutexLock lock(&mu_);
    unsent_bytes_ = count;
  }
  // Calls of Initialize do not return while `blocked`.
  void BlockInitialize(bool blocked) {
    MutexLock lock(&mu_);
    initialize_blocked_ = blocked;
    changed_.NotifyAll();
  }
  void BlockSnapshots(bool blocked) {
    MutexLock lock(&mu_);
    snapshots_blocked_ = blocked;
    changed_.NotifyAll();
  }
  // Restoring from `prefix` fails from now on.
  void Damage(const std::string& prefix) {
    MutexLock lock(&mu_);
    damaged_.insert(prefix);
  }
  // As if the process had been replaced.
  void Restart() {
    MutexLock lock(&mu_);
    StartAnew();
  }
  // Another chief has called: the first one is refused from now on.
  void Replace() {
    MutexLock lock(&mu_);
    replaced_ = true;
  }
  // Edits the server's status beyond what calls have made it.
  void EditStatus(const std::function<void(v1::ShardStatus*)>& edit) {
    MutexLock lock(&mu_);
    edit(&shard_);
  }

  // ---- Queries of a test. The first ones wait for that many.

  void AwaitProbes(int count) {
    MutexLock lock(&mu_);
    while (probes_ < count) changed_.Wait(&mu_);
  }
  void AwaitSnapshots(int count) {
    MutexLock lock(&mu_);
    while (snapshots_asked_ < count) changed_.Wait(&mu_);
  }
  std::vector<v1::InitializeShardRequest> AwaitInitializations(size_t count) {
    MutexLock lock(&mu_);
    while (initializations_.size() < count) changed_.Wait(&mu_);
    return initializations_;
  }
  void AwaitRetired(uint64_t incarnation) {
    MutexLock lock(&mu_);
    while (!retired_.contains(incarnation)) changed_.Wait(&mu_);
  }
  std::vector<v1::InitializeShardRequest> initializations() const {
    MutexLock lock(&mu_);
    return initializations_;
  }
  int probes() const {
    MutexLock lock(&mu_);
    return probes_;
  }
  int memories() const {
    MutexLock lock(&mu_);
    return memories_;
  }
  v1::AttendRequest last_attend() const {
    MutexLock lock(&mu_);
    return last_attend_;
  }
  v1::ShardStatus shard() const {
    MutexLock lock(&mu_);
    return shard_;
  }
  std::set<uint64_t> retired() const {
    MutexLock lock(&mu_);
    return retired_;
  }
  std::vector<v1::CommitRoundRequest> commits() const {
    MutexLock lock(&mu_);
    return commits_;
  }
  // The chunks of the last InitializeStreamed.
  std::vector<v1::InitializeChunk> chunks() const {
    MutexLock lock(&mu_);
    return chunks_;
  }
  int snapshots_asked() const {
    MutexLock lock(&mu_);
    return snapshots_asked_;
  }
  int finished() const {
    MutexLock lock(&mu_);
    return finished_;
  }
  std::string chief_address() const {
    MutexLock lock(&mu_);
    return chief_address_;
  }

 private:
  class SinkFile : public AppendFile {
   public:
    explicit SinkFile(ByteSink sink) : sink_(sink) {}
    absl::Status Append(absl::string_view data) override { return sink_(data); }
    absl::Status Sync() override { return absl::OkStatus(); }
    absl::Status Close() override { return absl::OkStatus(); }

   private:
    const ByteSink sink_;
  };

  static absl::Status WritePart(BundleDataWriter* writer, int data_shard,
                                v1::WriteSnapshotResponse* response) {
    const std::vector<float> values = {1, 2, 3};
    RETURN_IF_ERROR(writer->AddTensor(absl::StrCat("v", data_shard), Shape({3}), values));
    ASSIGN_OR_RETURN(const std::vector<BundleIndexEntry> entries, writer->Finish());
    for (const BundleIndexEntry& entry : entries) {
      v1::WriteSnapshotResponse::Entry* out = response->add_entries();
      out->set_key(entry.key);
      *out->mutable_entry() = entry.entry;
    }
    response->set_bytes_written(writer->bytes_written());
    response->set_cut_microseconds(7);
    return absl::OkStatus();
  }

  absl::Status BeginSnapshot() {
    MutexLock lock(&mu_);
    ++snapshots_asked_;
    changed_.NotifyAll();
    while (snapshots_blocked_) changed_.Wait(&mu_);
    if (failing_snapshots_ == 0) return absl::OkStatus();
    --failing_snapshots_;
    return absl::ResourceExhaustedError("no space left on device");
  }
  static absl::Status NotForChiefs() {
    return absl::UnimplementedError("a chief does not call it");
  }
  static v1::ShardStatus Empty() {
    v1::ShardStatus status;
    status.set_state(v1::ShardStatus::EMPTY);
    status.set_config_hash(kConfigHash);
    status.set_committed_round(-1);
    return status;
  }

  absl::Status Admit() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    changed_.NotifyAll();
    if (away_) return absl::UnavailableError("connection refused");
    if (replaced_) return absl::AbortedError("another chief has taken the caller's place");
    return absl::OkStatus();
  }
  void StartAnew() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    shard_ = Empty();
    retired_.clear();
  }
  template <typename Incarnations>
  void Refuse(const Incarnations& incarnations) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_) {
    retired_.insert(incarnations.begin(), incarnations.end());
    shard_.set_retired_incarnations(static_cast<int64_t>(retired_.size()));
    changed_.NotifyAll();
  }

  FileSystem* const file_system_;

  mutable Mutex mu_;
  CondVar changed_;
  bool away_ ABSL_GUARDED_BY(mu_) = false;
  bool replaced_ ABSL_GUARDED_BY(mu_) = false;
  bool initialize_blocked_ ABSL_GUARDED_BY(mu_) = false;
  bool snapshots_blocked_ ABSL_GUARDED_BY(mu_) = false;
  v1::ShardStatus shard_ ABSL_GUARDED_BY(mu_) = Empty();
  std::set<uint64_t> retired_ ABSL_GUARDED_BY(mu_);
  int64_t unsent_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<v1::InitializeChunk> chunks_ ABSL_GUARDED_BY(mu_);
  int failing_snapshots_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<absl::Status> failing_commits_ ABSL_GUARDED_BY(mu_);
  std::set<std::string> damaged_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::InitializeShardRequest> initializations_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::CommitRoundRequest> commits_ ABSL_GUARDED_BY(mu_);
  v1::AttendRequest last_attend_ ABSL_GUARDED_BY(mu_);
  int probes_ ABSL_GUARDED_BY(mu_) = 0;
  int memories_ ABSL_GUARDED_BY(mu_) = 0;
  int snapshots_asked_ ABSL_GUARDED_BY(mu_) = 0;
  int finished_ ABSL_GUARDED_BY(mu_) = 0;
  std::string chief_address_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_FAKE_PARAMETER_SERVER_H_
