set(punctual_gnu i686-linux-gnu)
set(punctual_qemu i386)
include("${CMAKE_CURRENT_LIST_DIR}/debian-cross.cmake")
if(CMAKE_HOST_SYSTEM_PROCESSOR STREQUAL x86_64)
  # That kernel runs it itself, filters of system calls included.
  unset(CMAKE_CROSSCOMPILING_EMULATOR)
  set(punctual_libraries /usr/${punctual_gnu}/lib)
  string(
    CONCAT CMAKE_EXE_LINKER_FLAGS_INIT "-Wl,--dynamic-linker=${punctual_libraries}/ld-linux.so.2"
           " -Wl,-rpath,${punctual_libraries}"
  )
endif()
