set(punctual_gnu arm-linux-gnueabihf)
set(punctual_qemu arm)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
