#include "tests/support/private_names.h"

#include <unistd.h>

#include <fstream>

#include "core/base/file.h"
#include "core/base/fresh_directory_testing.h"
#include "gtest/gtest.h"
#include "tests/support/process.h"

namespace keelson {
namespace {

// $0 is the directory, the rest the program with its arguments.
constexpr char kScript[] =
    "mount --bind \"$0/hosts\" /etc/hosts && "
    "mount --bind \"$0/resolv.conf\" /etc/resolv.conf && exec \"$@\"";

// In place: the programs have this very file, not its path.
void Overwrite(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::trunc);
  file << text;
  EXPECT_TRUE(file.flush()) << path;
}

}  // namespace

bool PrivateNames::Permitted() {
  const PrivateNames names;
  Process::Command command;
  command.argv = names.Wrapper();
  command.argv.push_back("/bin/true");
  command.log_path = JoinPath(names.directory_, "log");
  const auto process = Process::Start(command);
  return process.ok() && (*process)->Wait(absl::Seconds(60)) == 0;
}

PrivateNames::PrivateNames() : directory_(FreshDirectory()) {
  // c-ares, gRPC's resolver, then asks no name server; glibc's finds none at this address.
  Overwrite(JoinPath(directory_, "resolv.conf"), "lookup file\nnameserver 127.0.0.1\n");
  Write();
}

std::vector<std::string> PrivateNames::Wrapper() const {
  std::vector<std::string> wrapper = {"/usr/bin/unshare", "--mount"};
  if (geteuid() != 0) wrapper.push_back("--map-root-user");
  wrapper.insert(wrapper.end(), {"/bin/sh", "-c", kScript, directory_});
  return wrapper;
}

void PrivateNames::Set(const std::string& name, const std::string& address) {
  addresses_[name] = address;
  Write();
}

void PrivateNames::Write() const {
  std::string text = "127.0.0.1 localhost\n";
  for (const auto& [name, address] : addresses_) text += address + " " + name + "\n";
  Overwrite(JoinPath(directory_, "hosts"), text);
}

}  // namespace keelson
