#include "core/rpc/peer_host.h"

#include "absl/strings/match.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace keelson {

std::string HostOfPeer(absl::string_view peer) {
  const bool ipv4 = absl::ConsumePrefix(&peer, "ipv4:");
  if (!ipv4 && !absl::ConsumePrefix(&peer, "ipv6:")) return "";
  const std::string host = absl::StrReplaceAll(peer.substr(0, peer.rfind(':')),
                                               {{"%5B", "["}, {"%5D", "]"}, {"%25", "%"}});
  const bool here = ipv4 ? absl::StartsWith(host, "127.") : host == "[::1]";
  return here ? "" : host;
}

}  // namespace keelson
