/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation of buffers that are large enough to fail, with an error that names their purpose.
 * (Small allocations are GLib's, which aborts.)
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/* Allocates @bytes, at least one, uninitialised; free with g_free. NULL with @error
 * (LH_ERROR_RUNTIME): @what needs them. */
void *lh_memory_try(uint64_t bytes, const char *what, GError **error);

/* Sets @error (LH_ERROR_RUNTIME): @what needs @bytes, which are not available. */
void lh_memory_fail(uint64_t bytes, const char *what, GError **error);

/* Makes the process keep freed memory for later runs, so that timed runs do not get their buffers
 * from the system again, page by page. Only with GNU's C library. */
void lh_memory_keep(void);

/* Makes the process keep a few freed MiB for each thread, so that a loop that makes and frees small
 * structures does not get their memory from the system again each time. Only with GNU's C
 * library. */
void lh_memory_keep_freed(void);
