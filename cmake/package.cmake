# Debian packages, one a component: `cpack -G DEB` in a build that was configured with
# -DCMAKE_INSTALL_PREFIX=/usr. tools/check-packages.sh builds, installs and tries them.
#
#     lib      libpliant0      the shared libraries
#     dev      libpliant-dev   headers, static libraries, CMake and pkg-config files
#     pliant   pliant          programs, manual pages, completions, systemd units
#     python   python3-pliant  the package for tasks written in Python

# ---- what only packages have -----------------------------------------------------------------

foreach(unit pliantd pliant-agent)
    configure_file(packaging/systemd/${unit}.service.in ${unit}.service @ONLY)
    install(FILES ${PROJECT_BINARY_DIR}/${unit}.service COMPONENT pliant
        DESTINATION lib/systemd/system)
endforeach()
if(EXISTS ${PROJECT_SOURCE_DIR}/python/pliant)
    install(DIRECTORY python/pliant COMPONENT python
        DESTINATION lib/python3/dist-packages
        FILES_MATCHING PATTERN *.py PATTERN py.typed
        PATTERN __pycache__ EXCLUDE)
    set(python_component python)
endif()

pliant_compress(CHANGELOG.md changelog)
foreach(package lib=libpliant0 dev=libpliant-dev pliant=pliant python=python3-pliant)
    string(REGEX MATCH "^(.*)=(.*)$" _ ${package})
    set(component ${CMAKE_MATCH_1})
    set(documents ${CMAKE_INSTALL_DATADIR}/doc/${CMAKE_MATCH_2})
    install(FILES packaging/copyright COMPONENT ${component} DESTINATION ${documents})
    install(FILES ${PROJECT_BINARY_DIR}/changelog.gz COMPONENT ${component}
        DESTINATION ${documents})
endforeach()

# ---- the packages ----------------------------------------------------------------------------

set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_CONTACT "Pliant maintainers <maintainers@pliant.invalid>")
set(CPACK_PACKAGE_VENDOR Pliant)
set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "elastic adaptive job scheduler")
set(CPACK_STRIP_FILES ON)
set(CPACK_PACKAGING_INSTALL_PREFIX ${CMAKE_INSTALL_PREFIX})
set(CPACK_COMPONENTS_ALL lib dev pliant ${python_component})

set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_DEBIAN_PACKAGE_GENERATE_SHLIBS ON)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)

set(CPACK_DEBIAN_LIB_PACKAGE_NAME libpliant0)
set(CPACK_DEBIAN_LIB_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_LIB_PACKAGE_SHLIBDEPS ON)
set(CPACK_COMPONENT_LIB_DESCRIPTION "Shared libraries: the scheduler, for programs that manage a cluster of their
own, and what tasks need that take checkpoints.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libpliant-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS
    "libpliant0 (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_COMPONENT_DEV_DESCRIPTION "Headers, static libraries, and what CMake and pkg-config need to find them.")

set(CPACK_DEBIAN_PLIANT_PACKAGE_NAME pliant)
set(CPACK_DEBIAN_PLIANT_PACKAGE_SECTION admin)
set(CPACK_DEBIAN_PLIANT_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PLIANT_PACKAGE_DEPENDS passwd)
set(CPACK_DEBIAN_PLIANT_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/postinst
    ${PROJECT_SOURCE_DIR}/packaging/debian/prerm
    ${PROJECT_SOURCE_DIR}/packaging/debian/postrm)
set(CPACK_COMPONENT_PLIANT_DESCRIPTION "Picks the parallelism of running jobs from the slots that are there, and
restarts them with more or less when machines come and go. This package has
the service, the agent of each node, the command line and the simulator.")

set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-pliant)
set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
set(CPACK_DEBIAN_PYTHON_PACKAGE_ARCHITECTURE all)
set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS python3)
set(CPACK_DEBIAN_PYTHON_PACKAGE_CONTROL_EXTRA
    ${PROJECT_SOURCE_DIR}/packaging/debian/python/postinst
    ${PROJECT_SOURCE_DIR}/packaging/debian/python/prerm)
set(CPACK_COMPONENT_PYTHON_DESCRIPTION "Checkpoints, reports and notices of preemption for tasks that are written in
Python.")

include(CPack)
