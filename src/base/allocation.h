/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory that is large enough to be refused: whoever asks for it says what for. (Small things are
 * GLib's, which ends the process.)
 */
#pragma once

#include <glib.h>
#include <stdint.h>

/* @bytes, at least one, not initialized, freed with g_free; NULL with @error (LH_ERROR_RUNTIME)
 * that says that @what needs them. */
void *lh_memory_try(uint64_t bytes, const char *what, GError **error);

/* Sets @error (LH_ERROR_RUNTIME): @what needs @bytes, which the system does not give. */
void lh_memory_fail(uint64_t bytes, const char *what, GError **error);

/* From now on the process keeps the memory that it frees, for its next runs: where that is timed,
 * buffers should not come from the system each time, page by page. With GNU's C library; elsewhere
 * it does nothing. */
void lh_memory_keep(void);
