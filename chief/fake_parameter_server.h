// A parameter server for the chief's tests: keeps no values, writes real parts of snapshots, and
// fails on request.
#ifndef KEELSON_CHIEF_FAKE_PARAMETER_SERVER_H_
#define KEELSON_CHIEF_FAKE_PARAMETER_SERVER_H_

#include <cstdlib>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/mutex.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_writer.h"
#include "core/client/parameter_service.h"
#include "gtest/gtest.h"

namespace keelson {

inline std::string FreshModelDirectory() {
  std::string path = testing::TempDir() + "/keelson_chief_XXXXXX";
  EXPECT_NE(mkdtemp(path.data()), nullptr);
  return path;
}

// Thread-safe.
class FakeParameterServer : public ParameterService {
 public:
  static constexpr uint64_t kConfigHash = 0xabc;

  absl::Status Initialize(const v1::InitializeShardRequest& request,
                          v1::InitializeShardResponse* response) override {
    MutexLock lock(&mu_);
    initializations_.push_back(request);
    changed_.NotifyAll();
    if (damaged_.contains(request.restore_prefix())) {
      return absl::DataLossError(absl::StrCat(request.restore_prefix(), ": bad checksum"));
    }
    state_ = v1::ShardStatus::READY;
    return absl::OkStatus();
  }

  absl::Status GetStatus(const v1::GetShardStatusRequest& request,
                         v1::ShardStatus* response) override {
    MutexLock lock(&mu_);
    ++probes_;
    chief_address_ = request.chief_address();
    changed_.NotifyAll();
    if (away_) return absl::UnavailableError("connection refused");
    response->set_state(state_);
    response->set_config_hash(config_hash_);
    return absl::OkStatus();
  }

  absl::Status WriteSnapshot(const v1::WriteSnapshotRequest& request,
                             v1::WriteSnapshotResponse* response) override {
    {
      MutexLock lock(&mu_);
      ++snapshots_asked_;
      changed_.NotifyAll();
      if (failing_snapshots_ > 0) {
        --failing_snapshots_;
        return absl::ResourceExhaustedError("no space left on device");
      }
    }
    ASSIGN_OR_RETURN(
        const std::unique_ptr<BundleDataWriter> writer,
        BundleDataWriter::Create(request.data_path(), static_cast<int>(request.data_shard())));
    const std::vector<float> values = {1, 2, 3};
    RETURN_IF_ERROR(writer->AddTensor(absl::StrCat("v", request.data_shard()), Shape({3}), values));
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

  absl::Status Finish(const v1::FinishShardRequest& request,
                      v1::FinishShardResponse* response) override {
    MutexLock lock(&mu_);
    ++finished_;
    return away_ ? absl::UnavailableError("connection refused") : absl::OkStatus();
  }

  absl::StatusOr<ByteRope> Bulk(BulkMethod, ByteRope) override { return NotForChiefs(); }
  absl::Status FindChief(const v1::FindChiefRequest&, v1::FindChiefResponse*) override {
    return NotForChiefs();
  }

  // ---- What a test arranges.

  void SetAway(bool away) {
    MutexLock lock(&mu_);
    away_ = away;
  }
  void SetConfigHash(uint64_t hash) {
    MutexLock lock(&mu_);
    config_hash_ = hash;
  }
  void FailSnapshots(int count) {
    MutexLock lock(&mu_);
    failing_snapshots_ = count;
  }
  // Restoring from `prefix` fails from now on.
  void Damage(const std::string& prefix) {
    MutexLock lock(&mu_);
    damaged_.insert(prefix);
  }
  // As if the process had been replaced.
  void Restart() {
    MutexLock lock(&mu_);
    state_ = v1::ShardStatus::EMPTY;
  }

  // ---- What a test looks at. The first ones wait for as many.

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
  std::vector<v1::InitializeShardRequest> initializations() const {
    MutexLock lock(&mu_);
    return initializations_;
  }
  int probes() const {
    MutexLock lock(&mu_);
    return probes_;
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
  static absl::Status NotForChiefs() {
    return absl::UnimplementedError("a chief does not call it");
  }

  mutable Mutex mu_;
  CondVar changed_;
  bool away_ ABSL_GUARDED_BY(mu_) = false;
  uint64_t config_hash_ ABSL_GUARDED_BY(mu_) = kConfigHash;
  v1::ShardStatus::State state_ ABSL_GUARDED_BY(mu_) = v1::ShardStatus::EMPTY;
  int failing_snapshots_ ABSL_GUARDED_BY(mu_) = 0;
  std::set<std::string> damaged_ ABSL_GUARDED_BY(mu_);
  std::vector<v1::InitializeShardRequest> initializations_ ABSL_GUARDED_BY(mu_);
  int probes_ ABSL_GUARDED_BY(mu_) = 0;
  int snapshots_asked_ ABSL_GUARDED_BY(mu_) = 0;
  int finished_ ABSL_GUARDED_BY(mu_) = 0;
  std::string chief_address_ ABSL_GUARDED_BY(mu_);
};

}  // namespace keelson

#endif  // KEELSON_CHIEF_FAKE_PARAMETER_SERVER_H_
