/* memory.c - see memory.h */
#include "spec/memory.h"

const struct pliant_alloc *spec_memory;
