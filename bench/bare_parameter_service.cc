#include "bench/bare_parameter_service.h"

#include <cstring>
#include <utility>

#include "core/base/status_macros.h"
#include "core/optim/optimizer.h"
#include "core/optim/optimizer_groups.h"
#include "core/wire/value_codec.h"
#include "ps_server/service/bulk_calls.h"
#include "ps_server/snapshots/shard_files.h"

namespace keelson::bench {
namespace {

constexpr uint64_t kStoreId = 1;

// values += gradient
class SumOptimizer : public Optimizer {
 public:
  SumOptimizer() : Optimizer({}) {}

  void Update(const UpdateArgs& args) const override {
    if (args.gradient.format == WireFormat::kFloat32) {
      Add(args.gradient.data, args);
    } else {
      AddDecoded(args);
    }
  }

 private:
  static void Add(const uint8_t* gradient, const UpdateArgs& args) {
    const float* const in = args.values_in.data();
    float* const out = args.values_out.data();
    const size_t size = args.values_out.size();
    for (size_t i = 0; i < size; ++i) {
      float addend;  // at any address
      std::memcpy(&addend, gradient + i * sizeof(float), sizeof(float));
      out[i] = in[i] + addend;
    }
  }

  static void AddDecoded(const UpdateArgs& args) {
    std::vector<float> decoded(args.values_out.size());
    const absl::Span<float> to = absl::MakeSpan(decoded);
    if (args.gradient.format == WireFormat::kInt8) {
      DecodeInt8Group(args.gradient.scale, args.gradient.data, to);
    } else {
      DecodeElements(args.gradient.format, args.gradient.data, to);
    }
    Add(reinterpret_cast<const uint8_t*>(decoded.data()), args);
  }
};

// Pull's answer to a push: all blocks of its ranges, in the formats that it wants.
BulkRequest PullOf(BulkRequest push) {
  for (BlockRange& range : push.ranges) range.format = range.pull_format;
  push.known_versions.clear();
  push.step = 0;  // of a pull it is one to wait for
  return push;
}

}  // namespace

absl::Status BareParameterService::Initialize(const v1::InitializeShardRequest& request,
                                              v1::InitializeShardResponse* response) {
  ASSIGN_OR_RETURN(Placement placement, Placement::FromProto(request.placement()));
  v1::LearningRateConfig rate;
  rate.set_base(1);
  ASSIGN_OR_RETURN(LearningRateSchedule schedule, LearningRateSchedule::Create(rate, 0));
  VariableOptimizers optimizers =
      VariableOptimizers::OfAll(std::make_unique<SumOptimizer>(), placement.variables().size());
  ASSIGN_OR_RETURN(
      TableOptimizers table_optimizers,
      TableOptimizers::Create({request.optimizer(), {}, rate.base()}, placement.tables()));
  ASSIGN_OR_RETURN(
      std::unique_ptr<ShardStore> store,
      InitializeShard({std::move(placement), request.shard(), std::move(optimizers),
                       std::move(table_optimizers), std::move(schedule), request.seed()},
                      request.seed()));
  std::vector<uint64_t> members;
  for (const auto& member : request.members().members()) members.push_back(member.incarnation());
  store->SetMembers(std::move(members));
  const MutexLock lock(&mu_);
  store_ = std::move(store);
  return absl::OkStatus();
}

absl::StatusOr<ByteRope> BareParameterService::Bulk(BulkMethod method, ByteRope message) {
  const std::shared_ptr<ShardStore> store = Store();
  if (store == nullptr) return absl::UnavailableError("not initialised");
  ByteCursor cursor(message);
  BulkRequest request;
  RETURN_IF_ERROR(DecodeBulkRequest(&cursor, &request).status());
  BulkResponse response;
  response.store_id = kStoreId;
  ValuePayload values;
  if (method == BulkMethod::kPull) {
    RETURN_IF_ERROR(ServePull(store.get(), request, cursor, &response, &values));
  } else if (on_push_ == OnPush::kSum) {
    RETURN_IF_ERROR(ServePush(store.get(), method, request, {}, cursor, &response, &values));
  } else if (method == BulkMethod::kPushPull) {
    const ByteRope nothing;
    RETURN_IF_ERROR(
        ServePull(store.get(), PullOf(request), ByteCursor(nothing), &response, &values));
  }
  std::string header = EncodeBulkResponse(response, values.size());
  return std::move(values).Finish(std::move(header));
}

absl::Status BareParameterService::GetStatus(const v1::GetShardStatusRequest&,
                                             v1::ShardStatus* response) {
  response->set_state(Store() == nullptr ? v1::ShardStatus::EMPTY : v1::ShardStatus::READY);
  return absl::OkStatus();
}

std::shared_ptr<ShardStore> BareParameterService::Store() {
  const MutexLock lock(&mu_);
  return store_;
}

}  // namespace keelson::bench
