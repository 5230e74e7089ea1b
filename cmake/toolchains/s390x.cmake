set(punctual_gnu s390x-linux-gnu)
set(punctual_qemu s390x)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
