// Snapshots of a server with tables, as calls: cut, written or streamed, and restored from files or
// from a stream.
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "core/base/file.h"
#include "core/checkpoint/bundle_index.h"
#include "core/checkpoint/bundle_reader.h"
#include "core/checkpoint/stored_tables.h"
#include "gmock/gmock.h"
#include "ps_server/service/row_messages_testing.h"
#include "ps_server/service/shard_testing.h"

namespace keelson {
namespace {

using ::testing::HasSubstr;

constexpr char kRowOptimizer[] = "adagrad {}";
constexpr uint64_t kCutId = 0xc07;

class TableSnapshotTest : public testing::Test {
 protected:
  TableSnapshotTest() {
    for (uint64_t id = 0; id < 300; ++id) {
      const auto value = static_cast<float>(id);
      items_[id * id] = {value, -value, 1};
      users_[~id] = {value};
    }
    const auto pushed = CallBulk(&server_->handler, BulkMethod::kPush,
                                 RowPushOf(placement_, 0, 1, 1, {{0, items_}, {1, users_}}));
    EXPECT_TRUE(pushed.ok()) << pushed.status();
  }

  v1::PrepareCutResponse PrepareCut() { return PrepareCut({}, kCutId); }
  v1::PrepareCutResponse PrepareCut(v1::PrepareCutRequest request, uint64_t id,
                                    uint64_t chief = kTestChief) {
    *request.mutable_header() = HeaderOf(chief);
    request.set_cut_id(id);
    v1::PrepareCutResponse response;
    EXPECT_EQ(server_->handler.PrepareCut(request, &response), absl::OkStatus());
    return response;
  }
  // For all rows.
  template <typename Request>
  static void AddPlaces(Request* request) {
    for (int t = 0; t < 2; ++t) request->add_tables()->set_total_rows(300);
    request->set_cut_id(kCutId);
  }
  // The rows of both tables that a server answers.
  std::vector<RowsById> Pull(ParameterHandler* server) {
    std::vector<uint64_t> ids, others;
    for (const auto& [id, row] : items_) ids.push_back(id);
    for (const auto& [id, row] : users_) others.push_back(id);
    const std::vector<MessageRows> read = {{0, Ids(ids)}, {1, Ids(others)}};
    const auto answer = CallBulk(server, BulkMethod::kPull, RowPullOf(placement_, 0, read));
    EXPECT_TRUE(answer.ok()) << answer.status();
    return RowsOf(placement_, 0, read, *answer);
  }
  // Writes the index of one data file; returns the prefix.
  std::string WriteIndex(const v1::WriteSnapshotResponse& written) {
    std::vector<BundleIndexEntry> entries;
    for (const auto& entry : written.entries()) entries.push_back({entry.key(), entry.entry()});
    const std::string prefix = JoinPath(server_->model_dir, "model.ckpt-1");
    EXPECT_EQ(WriteBundleIndex(FileSystem::Real(), prefix, 1, std::move(entries)),
              absl::OkStatus());
    return prefix;
  }

  const Placement placement_ = TestTablePlacement(1);
  const TestServers servers_ = StartServers(placement_, kRowOptimizer);
  TestServer* const server_ = servers_[0].get();
  RowsById items_, users_;
};

TEST_F(TableSnapshotTest, TheCutSaysHowManyRowsThereAre) {
  EXPECT_THAT(PrepareCut().table_rows(), testing::ElementsAre(300, 300));
}

TEST_F(TableSnapshotTest, TheCutSaysWhatHasChangedSinceTheBase) {
  v1::PrepareCutRequest request;
  request.set_keep_changes(true);
  EXPECT_EQ(PrepareCut(request, 1).changes_size(), 0);
  const RowsById some = {{~uint64_t{5}, {1}}, {7, {1}}};
  ASSERT_TRUE(
      CallBulk(&server_->handler, BulkMethod::kPush, RowPushOf(placement_, 0, 1, 2, {{1, some}}))
          .ok());
  request.set_base_cut(1);
  for (const uint64_t id : {2, 3}) {  // the first one's snapshot fails
    const v1::PrepareCutResponse cut = PrepareCut(request, id);
    EXPECT_THAT(cut.table_rows(), testing::ElementsAre(300, 301));
    ASSERT_EQ(cut.changes_size(), 2);
    EXPECT_EQ(cut.changes(0).rows(), 0);
    EXPECT_EQ(cut.changes(1).rows(), 2);
    EXPECT_EQ(cut.changes(1).erased(), 0);
  }
  request.set_base_cut(3);
  EXPECT_EQ(PrepareCut(request, 4).changes(1).rows(), 0);
  request.set_base_cut(1);  // is forgotten
  EXPECT_EQ(PrepareCut(request, 5).changes_size(), 0);
  request.set_base_cut(5);
  EXPECT_EQ(PrepareCut(request, 6).changes_size(), 2);
  // Another shard.
  v1::InitializeShardRequest initialize = InitializeRequest(placement_, 0, kRowOptimizer);
  *initialize.mutable_header() = HeaderOf(kTestChief + 1);
  v1::InitializeShardResponse response;
  ASSERT_EQ(server_->handler.Initialize(initialize, &response), absl::OkStatus());
  request.set_base_cut(6);
  EXPECT_EQ(PrepareCut(request, 7, kTestChief + 1).changes_size(), 0);
}

TEST_F(TableSnapshotTest, PlacesThatAreMissingAreRefused) {
  PrepareCut();
  v1::WriteSnapshotRequest request = SnapshotRequest(1);
  request.set_cut_id(kCutId);
  v1::WriteSnapshotResponse response;
  const absl::Status status = server_->handler.WriteSnapshot(request, &response);
  EXPECT_EQ(status, absl::InvalidArgumentError(
                        "WriteSnapshot: tables: expected one for each of the 2 tables, found 0"));
}

TEST_F(TableSnapshotTest, ASnapshotIsRestoredFromItsFiles) {
  PrepareCut();
  v1::WriteSnapshotRequest request = SnapshotRequest(1);
  AddPlaces(&request);
  v1::WriteSnapshotResponse response;
  ASSERT_EQ(server_->handler.WriteSnapshot(request, &response), absl::OkStatus());
  const std::string path = DataPath(JoinPath(server_->model_dir, "model.ckpt-1"), 0, 1);
  ASSERT_EQ(
      FileSystem::Real()->Rename(PendingPath(path, request.header().chief_term(), kCutId), path),
      absl::OkStatus());
  WriteIndex(response);
  const std::vector<RowsById> rows = Pull(&server_->handler);
  ASSERT_EQ(rows[0].size(), 300u);
  const TestServers restored = StartServers(placement_, kRowOptimizer, server_->model_dir, 1);
  EXPECT_EQ(Pull(&restored[0]->handler), rows);
}

// A stream that brings the rows of a bundle, a few in each message.
class RowStream {
 public:
  RowStream(const BundleReader& bundle, const Placement& placement) {
    const StoredTables stored = *StoredTables::Open(&bundle);
    for (uint32_t p = 0; p < kRowPartitions; ++p) {
      for (size_t t = 0; t < placement.tables().size(); ++t) Add(stored, placement, p, t);
    }
  }

  std::vector<v1::InitializeChunk> chunks;

 private:
  void Add(const StoredTables& stored, const Placement& placement, uint32_t partition, size_t t) {
    const TableSpec& spec = placement.tables()[t];
    const std::vector<TableSlot> slots = {{"Adagrad", spec.dim, 0}};
    TableColumns columns;
    ASSERT_EQ(stored.Read(*stored.Find(spec.name), slots, partition, &columns), absl::OkStatus());
    for (size_t i = 0; i < columns.ids.size(); ++i) {
      v1::InitializeChunk::Rows* const rows = chunks.emplace_back().add_rows();
      rows->set_table(static_cast<uint32_t>(t));
      rows->set_partition(partition);
      const auto append = [](const auto& from, size_t begin, size_t count, std::string* to) {
        to->append(reinterpret_cast<const char*>(from.data() + begin), count * sizeof(from[0]));
      };
      const auto dim = static_cast<size_t>(spec.dim);
      append(columns.ids, i, 1, rows->mutable_keys());
      append(columns.last_steps, i, 1, rows->mutable_last_steps());
      append(columns.updates, i, 1, rows->mutable_updates());
      append(columns.values, i * dim, dim, rows->mutable_elements());
      append(columns.slots[0], i * dim, dim, rows->mutable_elements());
    }
  }
};

class StreamedRowsTest : public TableSnapshotTest {
 protected:
  // The server's snapshot, streamed, as the messages that restore it.
  StreamedRowsTest() {
    PrepareCut();
    v1::StreamSnapshotRequest request;
    *request.mutable_header() = HeaderOf(kTestChief);
    AddPlaces(&request);
    std::string content;
    v1::WriteSnapshotResponse response;
    const auto take = [&](absl::string_view bytes) {
      content.append(bytes.data(), bytes.size());
      return absl::OkStatus();
    };
    EXPECT_EQ(server_->handler.StreamSnapshot(request, take, &response), absl::OkStatus());
    const std::string path = DataPath(JoinPath(server_->model_dir, "model.ckpt-1"), 0, 1);
    EXPECT_EQ(WriteFileAtomically(path, content), absl::OkStatus());
    const auto bundle = BundleReader::Open(WriteIndex(response));
    EXPECT_TRUE(bundle.ok()) << bundle.status();
    *first_.mutable_start() = InitializeRequest(placement_, 0, kRowOptimizer);
    // Blocks start with their initial values; the rows alone come from the snapshot.
    size_t blocks = 0;
    for (const size_t p : placement_.PartitionsOf(0)) {
      blocks += static_cast<size_t>(placement_.NumBlocks(p));
    }
    for (size_t b = 0; b < blocks; ++b) first_.add_blocks()->set_version(1);
    first_.set_steps_done(1);
    chunks_ = RowStream(**bundle, placement_).chunks;
    EXPECT_EQ(chunks_.size(), 600u);
  }

  absl::Status Initialize(ParameterHandler* server) {
    size_t next = 0;
    const auto source = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
      if (next == chunks_.size()) return std::nullopt;
      return chunks_[next++];
    };
    v1::InitializeShardResponse response;
    return server->InitializeStreamed(first_, source, &response);
  }
  void ExpectRefused(const std::string& text) {
    const absl::Status status = Initialize(&other_.handler);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(status.message()), HasSubstr(text));
  }

  v1::InitializeChunk first_;
  std::vector<v1::InitializeChunk> chunks_;
  TestServer other_;
};

TEST_F(StreamedRowsTest, RowsComeBack) {
  ASSERT_EQ(Initialize(&other_.handler), absl::OkStatus());
  EXPECT_EQ(Pull(&other_.handler), Pull(&server_->handler));
}

TEST_F(StreamedRowsTest, WhatWasAppliedIsKnown) {
  v1::ShardState::Applied* const applied = first_.add_applied_by_partitions();
  applied->set_incarnation(1);
  v1::ShardState::Applied::Run* const run = applied->add_runs();
  run->set_end(kRowPartitions);
  run->set_sequence(1);
  ASSERT_EQ(Initialize(&other_.handler), absl::OkStatus());
  const std::vector<RowsById> rows = Pull(&other_.handler);
  ASSERT_TRUE(CallBulk(&other_.handler, BulkMethod::kPush,
                       RowPushOf(placement_, 0, 1, 1, {{0, items_}, {1, users_}}))
                  .ok());
  EXPECT_EQ(Pull(&other_.handler), rows);
  run->set_end(kRowPartitions + 1);
  TestServer another;
  EXPECT_EQ(Initialize(&another.handler).code(), absl::StatusCode::kInvalidArgument);
}

TEST_F(StreamedRowsTest, RowsThatMakeNoSenseAreNamed) {
  const std::vector<v1::InitializeChunk> good = chunks_;
  std::swap(chunks_[0], chunks_[1]);
  ExpectRefused("is of another partition or out of order");
  chunks_ = good;
  chunks_[1] = chunks_[0];
  ExpectRefused("is of another partition or out of order");
  chunks_ = good;
  chunks_[5].mutable_rows(0)->mutable_elements()->pop_back();
  ExpectRefused("bytes of values and slots for 1 rows, found");
  chunks_ = good;
  chunks_[5].mutable_rows(0)->set_table(2);
  ExpectRefused("rows of table 2, partition");
  chunks_ = good;
  chunks_[5].add_blocks();
  ExpectRefused("found another block or rows");
}

TEST(TableColumnNames, AreNoVariables) {
  for (const std::string name :
       {"users/keys", "items/values", "users/last_step", "items/updates", "users/Momentum"}) {
    const Placement placement = Placement::Compute({{name, Shape({2}), {}}}, 1, 1000, TestTables());
    TestServer server;
    v1::InitializeShardResponse response;
    const absl::Status status =
        server.handler.Initialize(InitializeRequest(placement, 0, "momentum {}"), &response);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << name;
    EXPECT_EQ(status.message(),
              absl::StrCat("placement.variables: expected names that no column of table \"",
                           name.substr(0, 5), "\" has in snapshots, found \"", name, "\""));
  }
  StartServers(Placement::Compute({{"users/Adam", Shape({2}), {}}}, 1, 1000, TestTables()),
               "momentum {}");
}

}  // namespace
}  // namespace keelson
