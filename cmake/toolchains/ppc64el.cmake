set(punctual_gnu powerpc64le-linux-gnu)
set(punctual_qemu ppc64le)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
