set(punctual_gnu riscv64-linux-gnu)
set(punctual_qemu riscv64)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
