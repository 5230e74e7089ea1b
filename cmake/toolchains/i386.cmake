set(punctual_gnu i686-linux-gnu)
set(punctual_qemu i386)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
if(CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL x86_64)
  # That kernel runs it itself, filters of system calls included.
  unset(CMAKE_CROSSCOMPILING_EMULATOR)
  set(CMAKE_EXE_LINKER_FLAGS_INIT
      "-Wl,--dynamic-linker=/usr/${punctual_gnu}/lib/ld-linux.so.2 -Wl,-rpath,/usr/${punctual_gnu}/lib"
  )
endif()
