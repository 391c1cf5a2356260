include(${CMAKE_CURRENT_LIST_DIR}/pliant-targets.cmake)
