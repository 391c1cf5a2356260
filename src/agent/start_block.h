/* start_block.h - the keeper's end of a start block (keeper.h), and the start of a process
 *
 * Owner   a block owns its strings until start_block_free()
 */
#ifndef PLIANT_AGENT_START_BLOCK_H
#define PLIANT_AGENT_START_BLOCK_H

#include <sys/types.h>

#include "agent/keeper.h"

struct start_block {
    struct keeper_start start;
    char *bytes;
};

/* Takes the descriptor. False: no memory, or no start block; free it all the same. */
bool start_block_read(struct start_block *b, int fd);
void start_block_free(struct start_block *b);

/* Text in memory that can be sent: a descriptor or -errno. */
int keeper_pack_text(const char *text, size_t size);

/* Start the process in a session of its own: no input, output to its files, no signal blocked or
 * ignored; born in a cgroup if there is a descriptor of one (-1: none). 0 and *ret_pid, or -errno
 * and in `why` what could not be done, for people. */
int start_process(const struct keeper_start *start, int group, pid_t *ret_pid, char *why,
                  size_t why_size);

#endif
