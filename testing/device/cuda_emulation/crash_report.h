// Explains a crash that was caused by accessing a GPU's memory.
#ifndef KEELSON_TESTING_DEVICE_CUDA_EMULATION_CRASH_REPORT_H_
#define KEELSON_TESTING_DEVICE_CUDA_EMULATION_CRASH_REPORT_H_

namespace keelson::cuda_emulation {

// From now on an invalid access is explained on stderr, in a line, before the program crashes as it
// would have.
void ReportCrashes();

}  // namespace keelson::cuda_emulation

#endif  // KEELSON_TESTING_DEVICE_CUDA_EMULATION_CRASH_REPORT_H_
