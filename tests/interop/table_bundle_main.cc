// table_bundle PREFIX: writes a bundle with the tables "users" of 1000 rows (UsersTable) and
// "nobody" of none, as three servers do.
#include <iostream>

#include "core/base/exit_code.h"
#include "core/base/file_system.h"
#include "core/checkpoint/table_testing.h"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: table_bundle PREFIX\n";
    return keelson::kExitPermanent;
  }
  keelson::TestTable nobody = keelson::UsersTable(0);
  nobody.spec.name = "nobody";
  keelson::WriteTables(keelson::FileSystem::Real(), argv[1], {keelson::UsersTable(1000), nobody},
                       /*num_shards=*/3);
  return 0;
}
