#include "bench/parameter_server_role.h"

#include <unistd.h>

#include <utility>

#include "absl/strings/str_cat.h"
#include "bench/bare_parameter_service.h"
#include "bench/socket.h"
#include "core/base/clock.h"
#include "core/base/random.h"
#include "core/base/status_macros.h"
#include "ps_server/service/parameter_handler.h"

namespace keelson::bench {
namespace {

using nlohmann::json;

// Both interfaces of a service.
template <typename Handler, typename Service>
Handler Both(std::unique_ptr<Service> service) {
  BulkHandler* const bulk = service.get();
  return {std::move(service), bulk};
}

class ParameterServerRole : public PeerRole {
 public:
  ParameterServerRole(std::unique_ptr<ParameterServer> server, std::string address)
      : server_(std::move(server)), address_(std::move(address)) {}

  json Ready() const override { return {{"address", address_}}; }

 private:
  const std::unique_ptr<ParameterServer> server_;
  const std::string address_;
};

}  // namespace

ParameterServer::ParameterServer(const Options& options)
    : handler_(MakeHandler(options)), service_(handler_.control.get(), handler_.bulk) {}

ParameterServer::Handler ParameterServer::MakeHandler(const Options& server) {
  using OnPush = BareParameterService::OnPush;
  const std::string& name = server.handler;
  if (name == "discard") {
    return Both<Handler>(std::make_unique<BareParameterService>(OnPush::kDiscard));
  }
  if (name == "sum") return Both<Handler>(std::make_unique<BareParameterService>(OnPush::kSum));
  ParameterHandler::Options options;
  options.incarnation = RandomId();
  options.model_dir = server.model_dir;
  return Both<Handler>(std::make_unique<ParameterHandler>(options, Clock::Real(), &end_));
}

absl::StatusOr<std::unique_ptr<ParameterServer>> ParameterServer::Start(const Options& options) {
  std::unique_ptr<ParameterServer> server(new ParameterServer(options));
  ASSIGN_OR_RETURN(
      server->server_,
      RpcServer::Start(options.listen_address, grpc::InsecureServerCredentials(),
                       {&server->service_}, {server->service_.RawMethods(), options.io_threads}));
  return server;
}

namespace {

// A server of port 0 has no local sockets, so its clients take TCP.
absl::StatusOr<std::string> ListenAddress(Transport transport) {
  if (transport == Transport::kUnix) return absl::StrCat("unix-abstract:keelson-bench-", getpid());
  if (transport == Transport::kTcp) return "127.0.0.1:0";
  ASSIGN_OR_RETURN(const Socket free, Listen(Transport::kTcp));
  return AddressOf(free);
}

}  // namespace

absl::StatusOr<std::unique_ptr<PeerRole>> MakeParameterServer(const json& spec) {
  const Transport transport = TransportFromName(spec.at("transport").get<std::string>());
  ParameterServer::Options options;
  ASSIGN_OR_RETURN(options.listen_address, ListenAddress(transport));
  options.handler = spec.at("handler").get<std::string>();
  options.io_threads = spec.at("io_threads").get<int>();
  options.model_dir = spec.value("model_dir", "");
  ASSIGN_OR_RETURN(std::unique_ptr<ParameterServer> server, ParameterServer::Start(options));
  const std::string address = transport == Transport::kUnix
                                  ? options.listen_address
                                  : absl::StrCat("127.0.0.1:", server->port());
  return std::make_unique<ParameterServerRole>(std::move(server), address);
}

}  // namespace keelson::bench
