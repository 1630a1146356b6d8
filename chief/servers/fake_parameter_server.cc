#include "chief/servers/fake_parameter_server.h"

#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/base/status_macros.h"
#include "core/checkpoint/bundle_format.h"
#include "core/checkpoint/bundle_writer.h"
#include "gtest/gtest.h"

namespace keelson {
namespace {

class SinkFile : public AppendFile {
 public:
  explicit SinkFile(ParameterControl::ByteSink sink) : sink_(sink) {}
  absl::Status Append(absl::string_view data) override { return sink_(data); }
  absl::Status Sync() override { return absl::OkStatus(); }
  absl::Status Close() override { return absl::OkStatus(); }

 private:
  const ParameterControl::ByteSink sink_;
};

absl::Status WritePart(BundleDataWriter* writer, size_t data_shard,
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

v1::ShardStatus EmptyShard() {
  v1::ShardStatus status;
  status.set_state(v1::ShardStatus::EMPTY);
  status.set_config_hash(FakeParameterServer::kConfigHash);
  status.set_committed_round(-1);
  return status;
}

}  // namespace

FakeParameterServer::FakeParameterServer(FileSystem* file_system, std::string model_dir)
    : file_system_(file_system), shard_(EmptyShard()), model_dir_(std::move(model_dir)) {
  Answer(&ParameterControl::Initialize, std::bind_front(&FakeParameterServer::DoInitialize, this));
  Answer(&ParameterControl::ChiefHeartbeat,
         std::bind_front(&FakeParameterServer::DoChiefHeartbeat, this));
  Answer(&ParameterControl::GetStatus, std::bind_front(&FakeParameterServer::DoGetStatus, this));
  Answer(&ParameterControl::WriteSnapshot,
         std::bind_front(&FakeParameterServer::DoWriteSnapshot, this));
  Answer(&ParameterControl::PrepareCut, std::bind_front(&FakeParameterServer::DoPrepareCut, this));
  After(&ParameterControl::CommitRound, [this](const auto& request, auto*) {
    if (request.only_ask()) return absl::OkStatus();
    EditStatus([&](v1::ShardStatus* shard) {
      shard->set_committed_round(request.round());
      shard->set_committed_contributions(request.contributions());
    });
    return absl::OkStatus();
  });
  // The process ends; the next call reaches another one.
  After(&ParameterControl::Finish, [this](const auto&, auto*) {
    Restart();
    return absl::OkStatus();
  });
}

absl::Status FakeParameterServer::DoInitialize(const v1::InitializeShardRequest& request,
                                               v1::InitializeShardResponse* response) {
  MutexLock lock(&mu_);
  if (request.has_restore_step() && damaged_.contains(request.restore_step())) {
    return absl::DataLossError(absl::StrCat("step ", request.restore_step(), ": bad checksum"));
  }
  lost_shard_ = false;
  shard_.set_state(v1::ShardStatus::READY);
  shard_.set_placement_fingerprint(request.placement_fingerprint());
  shard_.set_shard(request.shard());
  shard_.set_store_id(++stores_);
  shard_.set_committed_round(request.has_committed_round() ? request.committed_round() : -1);
  if (request.has_members()) TakeMembers(request.members());
  *response->mutable_status() = shard_;
  return absl::OkStatus();
}

absl::Status FakeParameterServer::DoChiefHeartbeat(const v1::ChiefHeartbeatRequest& request,
                                                   v1::ShardStatus* response) {
  MutexLock lock(&mu_);
  const uint64_t term = request.header().chief_term();
  if (replaced_ || term < shard_.chief_term()) {
    return absl::AbortedError("another chief has taken the caller's place");
  }
  shard_.set_chief_term(term);
  if (!request.job_state().empty() && request.job_state_version() >= shard_.job_state_version()) {
    shard_.set_job_state(request.job_state());
    shard_.set_job_state_version(request.job_state_version());
    ++memories_;
  }
  if (request.has_members()) TakeMembers(request.members());
  *response = shard_;
  response->clear_job_state();
  return absl::OkStatus();
}

absl::Status FakeParameterServer::DoGetStatus(const v1::GetShardStatusRequest& request,
                                              v1::ShardStatus* response) {
  MutexLock lock(&mu_);
  *response = shard_;
  if (!request.with_job_state()) response->clear_job_state();
  return absl::OkStatus();
}

absl::Status FakeParameterServer::DoPrepareCut(const v1::PrepareCutRequest& request,
                                               v1::PrepareCutResponse* response) {
  MutexLock lock(&mu_);
  if (lost_shard_) return absl::UnavailableError("not initialised");
  response->set_committed_round(shard_.committed_round());
  response->mutable_table_rows()->Add(table_rows_.begin(), table_rows_.end());
  if (request.base_cut() != 0 && request.base_cut() == known_cut_) {
    for (const auto& [rows, erased] : changes_) {
      v1::PrepareCutResponse::Changes* const of_table = response->add_changes();
      of_table->set_rows(rows);
      of_table->set_erased(erased);
    }
  }
  known_cut_ = request.keep_changes() ? request.cut_id() : 0;
  return absl::OkStatus();
}

absl::Status FakeParameterServer::DoWriteSnapshot(const v1::WriteSnapshotRequest& request,
                                                  v1::WriteSnapshotResponse* response) {
  const size_t data_shard = request.data_shard();
  std::string prefix;
  {
    MutexLock lock(&mu_);
    prefix = JoinPath(model_dir_, absl::StrCat("model.ckpt-", request.step()));
  }
  const std::string path = PendingPath(DataPath(prefix, data_shard, request.num_data_shards()),
                                       request.header().chief_term(), request.cut_id());
  ASSIGN_OR_RETURN(const std::unique_ptr<BundleDataWriter> writer,
                   BundleDataWriter::Create(file_system_, path, data_shard));
  return WritePart(writer.get(), data_shard, response);
}

absl::Status FakeParameterServer::StreamSnapshot(const v1::StreamSnapshotRequest& request,
                                                 ByteSink sink,
                                                 v1::WriteSnapshotResponse* response) {
  return Call(request, response, [&] { return DoStreamSnapshot(request, sink, response); });
}

absl::Status FakeParameterServer::DoStreamSnapshot(const v1::StreamSnapshotRequest& request,
                                                   ByteSink sink,
                                                   v1::WriteSnapshotResponse* response) {
  const size_t data_shard = request.data_shard();
  const std::unique_ptr<BundleDataWriter> writer =
      BundleDataWriter::CreateOn(std::make_unique<SinkFile>(sink), data_shard);
  RETURN_IF_ERROR(WritePart(writer.get(), data_shard, response));
  MutexLock lock(&mu_);
  response->set_bytes_written(response->bytes_written() + unsent_bytes_);
  return absl::OkStatus();
}

absl::Status FakeParameterServer::InitializeStreamed(const v1::InitializeChunk& first,
                                                     ChunkSource next,
                                                     v1::InitializeShardResponse* response) {
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

std::vector<float> FloatsOf(const v1::InitializeChunk::Block& block) {
  std::vector<float> floats(block.elements().size() / sizeof(float));
  std::memcpy(floats.data(), block.elements().data(), block.elements().size());
  return floats;
}

void FakeParameterServer::SetConfigHash(uint64_t hash) {
  EditStatus([hash](v1::ShardStatus* shard) { shard->set_config_hash(hash); });
}

void FakeParameterServer::FailSnapshots(int count) {
  const std::vector<absl::Status> errors(count,
                                         absl::ResourceExhaustedError("no space left on device"));
  FailNext(&ParameterControl::WriteSnapshot, errors);
  FailNext(&ParameterControl::StreamSnapshot, errors);
}

void FakeParameterServer::LoseBytes(int64_t count) {
  MutexLock lock(&mu_);
  unsent_bytes_ = count;
}

void FakeParameterServer::Damage(int64_t step) {
  MutexLock lock(&mu_);
  damaged_.insert(step);
}

void FakeParameterServer::SetModelDir(const std::string& model_dir) {
  MutexLock lock(&mu_);
  model_dir_ = model_dir;
}

void FakeParameterServer::SetTableRows(std::vector<int64_t> rows) {
  MutexLock lock(&mu_);
  table_rows_ = std::move(rows);
}

void FakeParameterServer::SetChanges(std::vector<std::pair<int64_t, int64_t>> changes) {
  MutexLock lock(&mu_);
  changes_ = std::move(changes);
}

void FakeParameterServer::Restart() {
  MutexLock lock(&mu_);
  known_cut_ = 0;
  shard_ = EmptyShard();
  lost_shard_ = true;
  members_.clear();
}

void FakeParameterServer::Replace() {
  MutexLock lock(&mu_);
  replaced_ = true;
}

void FakeParameterServer::EditStatus(const std::function<void(v1::ShardStatus*)>& edit) {
  MutexLock lock(&mu_);
  edit(&shard_);
}

void FakeParameterServer::AwaitMembersWithout(uint64_t incarnation) {
  MutexLock lock(&mu_);
  while (shard_.member_epoch() == 0 || members_.contains(incarnation)) changed_.Wait(&mu_);
}

std::optional<int64_t> FakeParameterServer::last_restore() const {
  const v1::InitializeShardRequest last = initializations().back();
  return last.has_restore_step() ? std::make_optional(last.restore_step()) : std::nullopt;
}

int FakeParameterServer::states() const {
  MutexLock lock(&mu_);
  return memories_;
}

v1::ShardStatus FakeParameterServer::shard() const {
  MutexLock lock(&mu_);
  return shard_;
}

std::set<uint64_t> FakeParameterServer::members() const {
  MutexLock lock(&mu_);
  return members_;
}

std::vector<v1::InitializeChunk> FakeParameterServer::chunks() const {
  MutexLock lock(&mu_);
  return chunks_;
}

void FakeParameterServer::TakeMembers(const v1::MemberList& members) {
  members_.clear();
  for (const v1::MemberList::Member& member : members.members()) {
    members_.insert(member.incarnation());
  }
  shard_.set_member_epoch(members.epoch());
  shard_.set_members(members.members_size());
  changed_.NotifyAll();
}

}  // namespace keelson
