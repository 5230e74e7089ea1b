# What `cmake --install` puts where, for find_package and for pkg-config.
# A version below 1.0 may break callers at each minor step, so that is how far a version reaches.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(targets punctual)
if(TARGET punctual_c)
  list(APPEND targets punctual_c)
endif()
install(TARGETS ${targets} EXPORT punctual-targets FILE_SET HEADERS FILE_SET definitions)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/punctual")
install(EXPORT punctual-targets NAMESPACE punctual:: DESTINATION "${package_dir}")
configure_package_config_file(
  cmake/punctual-config.cmake.in punctual-config.cmake INSTALL_DESTINATION "${package_dir}"
)
write_basic_package_version_file(punctual-config-version.cmake COMPATIBILITY SameMinorVersion)
install(
  FILES "${CMAKE_CURRENT_BINARY_DIR}/punctual-config.cmake"
        "${CMAKE_CURRENT_BINARY_DIR}/punctual-config-version.cmake"
  DESTINATION "${package_dir}"
)

configure_file(cmake/punctual.pc.in punctual.pc @ONLY)
install(
  FILES "${CMAKE_CURRENT_BINARY_DIR}/punctual.pc" DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig"
)
if(TARGET punctual_c)
  list(TRANSFORM c_runtime PREPEND " -l")
  list(JOIN c_runtime "" c_runtime)
  configure_file(cmake/punctual-c.pc.in punctual-c.pc @ONLY)
  install(
    FILES "${CMAKE_CURRENT_BINARY_DIR}/punctual-c.pc"
    DESTINATION "${CMAKE_INSTALL_DATADIR}/pkgconfig"
  )
endif()
