# libpliant, shared and static, from the objects of pliant-core; and how others find it.

add_library(pliant SHARED)
target_link_libraries(pliant PRIVATE pliant-core)
target_include_directories(pliant INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_options(pliant PRIVATE
    -Wl,--version-script=${PROJECT_SOURCE_DIR}/src/libpliant.map)
set_target_properties(pliant PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    LINK_DEPENDS ${PROJECT_SOURCE_DIR}/src/libpliant.map)

# A static library knows no hidden symbols once it is linked into a program: our inner names
# could collide with the program's. So its objects are joined into one, and what is hidden
# becomes local to that.
set(joined ${PROJECT_BINARY_DIR}/pliant.o)
add_custom_command(
    OUTPUT ${joined}
    COMMAND ${CMAKE_LINKER} -r -o ${joined} $<TARGET_OBJECTS:pliant-core>
    COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${joined}
    DEPENDS pliant-core $<TARGET_OBJECTS:pliant-core>
    COMMENT "Joining the objects of libpliant.a"
    COMMAND_EXPAND_LISTS
    VERBATIM)
add_library(pliant-static STATIC ${joined})
target_include_directories(pliant-static INTERFACE
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_link_libraries(pliant-static INTERFACE m)
set_target_properties(pliant-static PROPERTIES
    OUTPUT_NAME pliant
    EXPORT_NAME static
    LINKER_LANGUAGE C)

install(TARGETS pliant pliant-static EXPORT pliant-targets
    LIBRARY COMPONENT lib NAMELINK_COMPONENT dev
    ARCHIVE COMPONENT dev)
install(DIRECTORY include/pliant TYPE INCLUDE COMPONENT dev)

# ---- find_package(pliant): targets pliant::pliant and pliant::static ----------------------

include(CMakePackageConfigHelpers)
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/pliant)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/pliant-config-version.cmake
    COMPATIBILITY SameMinorVersion)
install(EXPORT pliant-targets NAMESPACE pliant:: DESTINATION ${package_dir} COMPONENT dev)
install(FILES cmake/pliant-config.cmake ${PROJECT_BINARY_DIR}/pliant-config-version.cmake
    DESTINATION ${package_dir} COMPONENT dev)

# ---- pkg-config; paths are relative to the file, so that a prefix can be moved ------------

file(RELATIVE_PATH PC_PREFIX ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH PC_LIBDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH PC_INCLUDEDIR ${CMAKE_INSTALL_PREFIX} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
configure_file(cmake/pliant.pc.in pliant.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pliant.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
    COMPONENT dev)
