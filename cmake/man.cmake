# Manual pages and completions: what the shell offers of the programs.

find_program(GZIP gzip REQUIRED)

# SOURCE -> NAME.gz in the build tree, the same bytes from the same source.
function(pliant_compress source name)
    set(out ${PROJECT_BINARY_DIR}/${name}.gz)
    add_custom_command(OUTPUT ${out}
        COMMAND ${GZIP} -9nc ${PROJECT_SOURCE_DIR}/${source} >${out}
        DEPENDS ${PROJECT_SOURCE_DIR}/${source}
        COMMENT "Compressing ${source}")
    add_custom_target(compress-${name} ALL DEPENDS ${out})
endfunction()

file(GLOB man_pages CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/man man/*.[1-8])
foreach(page IN LISTS man_pages)
    pliant_compress(man/${page} ${page})
    string(REGEX REPLACE ".*[.]" "" section ${page})
    install(FILES ${PROJECT_BINARY_DIR}/${page}.gz COMPONENT pliant
        DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section})
endforeach()

install(FILES completions/pliantctl.bash COMPONENT pliant
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME pliantctl)
install(FILES completions/_pliantctl COMPONENT pliant
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
