#include "ps_server/service/parameter_grpc_service.h"

#include <optional>
#include <string>
#include <utility>

#include "core/base/status_macros.h"

namespace keelson {
namespace {

constexpr size_t kChunkBytes = 1 << 20;

// Sends the bytes of a data file as messages of kChunkBytes.
class ChunkStream {
 public:
  explicit ChunkStream(grpc::ServerWriter<v1::SnapshotChunk>* writer) : writer_(writer) {}

  absl::Status Append(absl::string_view bytes) {
    std::string* data = chunk_.mutable_data();
    while (!bytes.empty()) {
      const absl::string_view part = bytes.substr(0, kChunkBytes - data->size());
      data->append(part.data(), part.size());
      bytes.remove_prefix(part.size());
      if (data->size() == kChunkBytes) RETURN_IF_ERROR(Send());
    }
    return absl::OkStatus();
  }

  absl::Status End(v1::WriteSnapshotResponse response) {
    if (!chunk_.data().empty()) RETURN_IF_ERROR(Send());
    *chunk_.mutable_end() = std::move(response);
    return Send();
  }

 private:
  absl::Status Send() {
    if (!writer_->Write(chunk_)) return absl::CancelledError("the caller has gone");
    chunk_.Clear();
    return absl::OkStatus();
  }

  grpc::ServerWriter<v1::SnapshotChunk>* const writer_;
  v1::SnapshotChunk chunk_;
};

absl::Status SendSnapshot(ParameterControl* control, const v1::StreamSnapshotRequest& request,
                          grpc::ServerWriter<v1::SnapshotChunk>* writer) {
  ChunkStream stream(writer);
  v1::WriteSnapshotResponse response;
  RETURN_IF_ERROR(control->StreamSnapshot(
      request, [&stream](absl::string_view bytes) { return stream.Append(bytes); }, &response));
  return stream.End(std::move(response));
}

}  // namespace

std::vector<RawMethod> ParameterGrpcService::RawMethods() {
  const auto handle = [this](BulkMethod method) {
    return [this, method](ByteRope request) { return bulk_->Bulk(method, std::move(request)); };
  };
  // The RequestX methods of a raw service have no common form but their names, hence the three
  // lines.
  return {
      {[this](auto... call) { RequestPull(call...); }, handle(BulkMethod::kPull)},
      {[this](auto... call) { RequestPush(call...); }, handle(BulkMethod::kPush)},
      {[this](auto... call) { RequestPushPull(call...); }, handle(BulkMethod::kPushPull)},
  };
}

grpc::Status ParameterGrpcService::StreamSnapshot(grpc::ServerContext* context,
                                                  const v1::StreamSnapshotRequest* request,
                                                  grpc::ServerWriter<v1::SnapshotChunk>* writer) {
  return ToGrpcStatus(SendSnapshot(control_, *request, writer));
}

grpc::Status ParameterGrpcService::InitializeStreamed(
    grpc::ServerContext* context, grpc::ServerReader<v1::InitializeChunk>* reader,
    v1::InitializeShardResponse* response) {
  const auto next = [&]() -> absl::StatusOr<std::optional<v1::InitializeChunk>> {
    v1::InitializeChunk chunk;
    if (reader->Read(&chunk)) return chunk;
    if (context->IsCancelled()) return absl::CancelledError("the caller has gone");
    return std::nullopt;
  };
  v1::InitializeChunk first;
  if (!reader->Read(&first)) {
    return ToGrpcStatus(absl::InvalidArgumentError("expected a first message, found none"));
  }
  return ToGrpcStatus(control_->InitializeStreamed(first, next, response));
}

}  // namespace keelson
