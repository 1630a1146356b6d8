// The host of a call's peer, as others may reach it.
#ifndef KEELSON_CORE_RPC_PEER_HOST_H_
#define KEELSON_CORE_RPC_PEER_HOST_H_

#include <string>

#include "absl/strings/string_view.h"

namespace keelson {

// "10.0.0.7" or "[fd00::7]" of a peer as gRPC names it (ServerContextBase::peer):
// "ipv4:10.0.0.7:40210", "ipv6:%5Bfd00::7%5D:40210". Empty: the peer is on this machine, where it
// has used an address that means another machine elsewhere (127.0.0.1, ::1), or no address at all.
std::string HostOfPeer(absl::string_view peer);

}  // namespace keelson

#endif  // KEELSON_CORE_RPC_PEER_HOST_H_
