# libpliantworker, shared and static, for the tasks that pliant-agent starts; and pliant-worker.
#
# It stands alone: what it takes of the rest (names that are hidden) is written down here.

file(GLOB worker_sources CONFIGURE_DEPENDS src/worker/*.c)
add_library(pliantworker-objects OBJECT ${worker_sources}
    src/graph/key_groups.c src/spec/json_out.c src/spec/memory.c src/util/alloc.c
    src/util/decimal.c)
target_include_directories(pliantworker-objects PUBLIC include src)
target_compile_definitions(pliantworker-objects PRIVATE
    _GNU_SOURCE PLIANT_VERSION="${PROJECT_VERSION}")
set_target_properties(pliantworker-objects PROPERTIES
    POSITION_INDEPENDENT_CODE ON
    C_VISIBILITY_PRESET hidden)

set(worker_include
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
    $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
set(worker_map ${PROJECT_SOURCE_DIR}/src/worker/libpliantworker.map)
add_library(pliantworker SHARED)
target_link_libraries(pliantworker PRIVATE pliantworker-objects m)
target_include_directories(pliantworker INTERFACE ${worker_include})
target_link_options(pliantworker PRIVATE -Wl,--version-script=${worker_map})
set_target_properties(pliantworker PROPERTIES
    VERSION ${PROJECT_VERSION}
    SOVERSION 0
    EXPORT_NAME worker
    LINK_DEPENDS ${worker_map})

# One object in which all is local but our own names: a part that is taken along may have one of
# libpliant's.
set(joined_worker ${PROJECT_BINARY_DIR}/pliantworker.o)
add_custom_command(
    OUTPUT ${joined_worker}
    COMMAND ${CMAKE_LINKER} -r -o ${joined_worker} $<TARGET_OBJECTS:pliantworker-objects>
    COMMAND ${CMAKE_OBJCOPY} --wildcard --keep-global-symbol=pliant_worker_* ${joined_worker}
    DEPENDS pliantworker-objects $<TARGET_OBJECTS:pliantworker-objects>
    COMMENT "Joining the objects of libpliantworker.a"
    COMMAND_EXPAND_LISTS
    VERBATIM)
add_library(pliantworker-static STATIC ${joined_worker})
target_include_directories(pliantworker-static INTERFACE ${worker_include})
target_link_libraries(pliantworker-static INTERFACE m)
set_target_properties(pliantworker-static PROPERTIES
    OUTPUT_NAME pliantworker
    EXPORT_NAME worker-static
    LINKER_LANGUAGE C)

# find_package(pliant): pliant::worker and pliant::worker-static; pkg-config: pliantworker.
install(TARGETS pliantworker pliantworker-static EXPORT pliant-targets
    LIBRARY COMPONENT lib NAMELINK_COMPONENT dev
    ARCHIVE COMPONENT dev)
configure_file(cmake/pliantworker.pc.in pliantworker.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/pliantworker.pc
    DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)

# With inner names, for the tests and the command.
pliant_part(worker)
target_compile_definitions(service-worker PRIVATE PLIANT_VERSION="${PROJECT_VERSION}")
pliant_program(pliant-worker service-worker)
