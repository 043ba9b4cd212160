/* Work that is cut into pieces, on several threads. */
#pragma once

#include <stdint.h>

/* Calls @run for every piece in [0, pieces), each once, on @threads threads (one is the caller),
 * which are numbered from 0; returns when all are done. */
void lh_parallel(unsigned threads, uint32_t pieces,
                 void (*run)(void *data, unsigned thread, uint32_t piece), void *data);
