// A parameter server for the chief's tests: keeps no values, and writes real parts of snapshots.
#ifndef KEELSON_CHIEF_SERVERS_FAKE_PARAMETER_SERVER_H_
#define KEELSON_CHIEF_SERVERS_FAKE_PARAMETER_SERVER_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/base/file_system.h"
#include "core/base/fresh_directory_testing.h"
#include "core/base/mutex.h"
#include "testing/services/faulty_parameter_control.h"

namespace keelson {

// Thread-safe.
class FakeParameterServer : public FaultyParameterControl {
 public:
  static constexpr uint64_t kConfigHash = 0xabc;

  // The fake writes its parts of snapshots to `model_dir` of a file system.
  explicit FakeParameterServer(FileSystem* file_system = FileSystem::Real(),
                               std::string model_dir = FreshDirectory());

  absl::Status StreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                              v1::WriteSnapshotResponse* response) override;
  absl::Status InitializeStreamed(const v1::InitializeChunk& first, ChunkSource next,
                                  v1::InitializeShardResponse* response) override;

  // ---- Faults that a test arranges.

  void SetConfigHash(uint64_t hash);
  // The next snapshots, written or streamed, fail.
  void FailSnapshots(int count);
  // The next commits return these statuses, before commits succeed again.
  void FailCommits(const std::vector<absl::Status>& statuses) {
    FailNext(&ParameterControl::CommitRound, statuses);
  }
  // Streams of a snapshot lack this many of their bytes.
  void LoseBytes(int64_t count);
  // Restoring the snapshot of `step` fails from now on.
  void Damage(int64_t step);
  // As if the server had been started with this directory.
  void SetModelDir(const std::string& model_dir);
  // Of the cuts that it prepares, by table.
  void SetTableRows(std::vector<int64_t> rows);
  // Rows that have changed since the cut before, and erased ids, of each table.
  void SetChanges(std::vector<std::pair<int64_t, int64_t>> changes);
  // As if the process had been replaced.
  void Restart();
  // Another chief has called: the first one is refused from now on.
  void Replace();
  // Edits the server's status beyond what calls have made it.
  void EditStatus(const std::function<void(v1::ShardStatus*)>& edit);

  // ---- Queries of a test. The first ones wait for that many.

  void AwaitProbes(int count) { AwaitCount(&ParameterControl::ChiefHeartbeat, count); }
  void AwaitSnapshots(int count) { AwaitCount(&ParameterControl::WriteSnapshot, count); }
  std::vector<v1::InitializeShardRequest> AwaitInitializations(int count) {
    AwaitCount(&ParameterControl::Initialize, count);
    return initializations();
  }
  // Waits for members among which this incarnation is not.
  void AwaitMembersWithout(uint64_t incarnation);
  // The snapshot of the last Initialize; nothing: initial values.
  std::optional<int64_t> last_restore() const;
  std::vector<v1::InitializeShardRequest> initializations() const {
    return Requests(&ParameterControl::Initialize);
  }
  int probes() const { return Count(&ParameterControl::ChiefHeartbeat); }
  v1::ChiefHeartbeatRequest last_heartbeat() const {
    return Requests(&ParameterControl::ChiefHeartbeat).back();
  }
  std::vector<v1::CommitRoundRequest> commits() const {
    return Requests(&ParameterControl::CommitRound);
  }
  int snapshots_asked() const { return Count(&ParameterControl::WriteSnapshot); }
  int finished() const { return Count(&ParameterControl::Finish); }
  int states() const;
  v1::ShardStatus shard() const;
  // The incarnations of the newest members.
  std::set<uint64_t> members() const;
  // The chunks of the last InitializeStreamed.
  std::vector<v1::InitializeChunk> chunks() const;

 private:
  absl::Status DoInitialize(const v1::InitializeShardRequest& request,
                            v1::InitializeShardResponse* response);
  absl::Status DoChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                v1::ShardStatus* response);
  absl::Status DoGetStatus(const v1::GetShardStatusRequest& request, v1::ShardStatus* response);
  absl::Status DoPrepareCut(const v1::PrepareCutRequest& request, v1::PrepareCutResponse* response);
  absl::Status DoWriteSnapshot(const v1::WriteSnapshotRequest& request,
                               v1::WriteSnapshotResponse* response);
  absl::Status DoStreamSnapshot(const v1::StreamSnapshotRequest& request, ByteSink sink,
                                v1::WriteSnapshotResponse* response);
  void TakeMembers(const v1::MemberList& members) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mu_);

  FileSystem* const file_system_;

  mutable Mutex mu_;
  CondVar changed_;
  bool replaced_ ABSL_GUARDED_BY(mu_) = false;
  // It was restarted, and has not been initialised since.
  bool lost_shard_ ABSL_GUARDED_BY(mu_) = false;
  v1::ShardStatus shard_ ABSL_GUARDED_BY(mu_);
  std::set<uint64_t> members_ ABSL_GUARDED_BY(mu_);
  int64_t unsent_bytes_ ABSL_GUARDED_BY(mu_) = 0;
  std::vector<v1::InitializeChunk> chunks_ ABSL_GUARDED_BY(mu_);
  std::string model_dir_ ABSL_GUARDED_BY(mu_);
  std::vector<int64_t> table_rows_ ABSL_GUARDED_BY(mu_);
  std::vector<std::pair<int64_t, int64_t>> changes_ ABSL_GUARDED_BY(mu_);
  uint64_t known_cut_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<int64_t> damaged_ ABSL_GUARDED_BY(mu_);
  uint64_t stores_ ABSL_GUARDED_BY(mu_) = 0;
  int memories_ ABSL_GUARDED_BY(mu_) = 0;
};

// The elements that a block was sent with.
std::vector<float> FloatsOf(const v1::InitializeChunk::Block& block);

}  // namespace keelson

#endif  // KEELSON_CHIEF_SERVERS_FAKE_PARAMETER_SERVER_H_
