# How all of our C is compiled.

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)

option(PLIANT_WERROR "Warnings are errors" OFF)
option(PLIANT_COVERAGE "Count lines and branches (gcc)" OFF)
option(PLIANT_FUZZ "tests/fuzz become libFuzzer programs (clang)" OFF)
set(PLIANT_SANITIZE "" CACHE STRING "Sanitizers, as for -fsanitize=: address,undefined")

if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
    set(CMAKE_BUILD_TYPE Release)
endif()
# An assert that fails is a bug of ours, and going on would hide it: no NDEBUG in any build.
foreach(config RELEASE RELWITHDEBINFO MINSIZEREL)
    string(REPLACE "-DNDEBUG" "" CMAKE_C_FLAGS_${config} "${CMAKE_C_FLAGS_${config}}")
endforeach()

add_compile_options(-Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wswitch-enum -Wvla
    -Wstrict-prototypes -Wmissing-prototypes)
if(PLIANT_WERROR)
    add_compile_options(-Werror)
endif()
# A fused multiply-add rounds once instead of twice: decisions would depend on the machine.
add_compile_options(-ffp-contract=off)

if(PLIANT_FUZZ)
    if(NOT CMAKE_C_COMPILER_ID MATCHES Clang)
        message(FATAL_ERROR "PLIANT_FUZZ needs clang: set CC=clang")
    endif()
    set(PLIANT_SANITIZE address,undefined)
    add_compile_options(-fsanitize=fuzzer-no-link)
endif()
if(PLIANT_SANITIZE)
    add_compile_options(-fsanitize=${PLIANT_SANITIZE} -fno-sanitize-recover=all
        -fno-omit-frame-pointer)
    add_link_options(-fsanitize=${PLIANT_SANITIZE})
endif()
if(PLIANT_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic) # comparisons have threads
    add_link_options(--coverage)
endif()
