# Debian's cross compiler for one architecture, and qemu-user to run what it makes. Read by the
# files beside it, which set the architecture's names: GNU's and qemu's.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR ${punctual_qemu})
set(CMAKE_CXX_COMPILER ${punctual_gnu}-g++)
set(CMAKE_C_COMPILER ${punctual_gnu}-gcc)
set(CMAKE_CXX_FLAGS_INIT -Wno-psabi)  # notes on ARM's old calling convention
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-${punctual_qemu}-static -L /usr/${punctual_gnu})
