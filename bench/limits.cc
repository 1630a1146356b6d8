#include "bench/limits.h"

#include "absl/strings/match.h"
#include "core/base/status_macros.h"

namespace keelson::bench {

using nlohmann::json;

absl::StatusOr<std::unique_ptr<Limits>> Limits::Start(const LimitOptions& options) {
  const json common = {{"transport", TransportName(options.transport)},
                       {"message_bytes", options.message_bytes},
                       {"memory_bytes", options.memory_bytes},
                       {"threads", options.baseline_threads}};
  const auto start = [&](const char* role, const json& address) {
    json spec = common;
    spec["role"] = role;
    spec["tuned"] = options.baseline_tuned || !absl::StartsWith(role, "baseline");
    spec["address"] = address;
    return Peer::Start(spec);
  };
  std::unique_ptr<Limits> limits(new Limits(options));
  ASSIGN_OR_RETURN(limits->copier_, start("memory_copier", nullptr));
  ASSIGN_OR_RETURN(limits->raw_receiver_, start("raw_receiver", nullptr));
  ASSIGN_OR_RETURN(limits->raw_sender_,
                   start("raw_sender", limits->raw_receiver_->ready().at("address")));
  ASSIGN_OR_RETURN(limits->baseline_server_, start("baseline_server", nullptr));
  ASSIGN_OR_RETURN(limits->baseline_client_,
                   start("baseline_client", limits->baseline_server_->ready().at("address")));
  return limits;
}

Contender Limits::RawSocket() const {
  return {{raw_receiver_.get(), raw_sender_.get()}, {}, json::object()};
}

Contender Limits::MemoryCopy() const { return {{copier_.get()}, {}, json::object()}; }

Contender Limits::Baseline(const std::string& method) const {
  return {{baseline_client_.get()}, {baseline_server_.get()}, {{"method", method}}};
}

}  // namespace keelson::bench
