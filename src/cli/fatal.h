/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How longhaul exits when memory or threads run out.
 */
#pragma once

/*
 * Installs the handler for GLib's failures to allocate memory or start a thread: it prints one line
 * to standard error, calls @discard (may be NULL; must not allocate) and exits with status 4. GLib
 * alone would abort. Large allocations use functions that can fail instead (base/allocation.h).
 */
void lh_fatal_install(void (*discard)(void));

/* From now on also calls @tell with the reason; it must not allocate either. */
void lh_fatal_tell(void (*tell)(const char *reason));
