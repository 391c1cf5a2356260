# Manual pages and completions: what the shell offers of the programs.

file(GLOB man_pages CONFIGURE_DEPENDS man/*.[1-8])
foreach(page IN LISTS man_pages)
    cmake_path(GET page EXTENSION LAST_ONLY section)
    string(SUBSTRING ${section} 1 1 section)
    install(FILES ${page} DESTINATION ${CMAKE_INSTALL_MANDIR}/man${section} COMPONENT pliant)
endforeach()

install(FILES completions/pliantctl.bash COMPONENT pliant
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME pliantctl)
install(FILES completions/_pliantctl COMPONENT pliant
    DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/vendor-completions)
