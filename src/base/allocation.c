/* SPDX-License-Identifier: Apache-2.0 */
/* Large memory. */
#include "base/allocation.h"

#include "base/error.h"
#include "base/units.h"

#include <limits.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

void
lh_memory_fail(uint64_t bytes, const char *what, GError **error)
{
    g_autofree char *text = lh_format_bytes(bytes);

    g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                "out of memory: %s needs %s, which the system does not give", what, text);
}

void *
lh_memory_try(uint64_t bytes, const char *what, GError **error)
{
    void *memory = g_try_malloc(MAX(bytes, 1));

    if (memory == NULL)
        lh_memory_fail(bytes, what, error);
    return memory;
}

/* Most memory that lh_memory_keep_freed() keeps at the end of each heap. */
#define KEPT_BYTES (8 << 20)

void
lh_memory_keep(void)
{
#ifdef __GLIBC__
    /* One heap for all threads, since the next run has new threads. */
    mallopt(M_ARENA_MAX, 1);
    mallopt(M_MMAP_MAX, 0); /* a buffer with a mapping of its own would be returned with it */
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
#endif
}

void
lh_memory_keep_freed(void)
{
#ifdef __GLIBC__
    mallopt(M_TRIM_THRESHOLD, KEPT_BYTES);
    mallopt(M_MMAP_THRESHOLD, KEPT_BYTES);
#endif
}
