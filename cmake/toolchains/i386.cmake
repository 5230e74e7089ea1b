set(punctual_gnu i686-linux-gnu)
set(punctual_qemu i386)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
