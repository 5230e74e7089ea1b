set(punctual_gnu aarch64-linux-gnu)
set(punctual_qemu aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
