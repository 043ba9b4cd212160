/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How longhaul ends when memory or threads run out.
 */
#pragma once

/*
 * From now on, if GLib cannot allocate memory or start a thread, the process says so in one line on
 * standard error, calls @discard (may be NULL; it must not allocate) and ends with status 4. GLib
 * itself would abort the process. Whoever asks for much memory asks in a way that can fail
 * (base/allocation.h).
 */
void lh_fatal_install(void (*discard)(void));

/* From now on @tell is called as well, with the reason in words; likewise. */
void lh_fatal_tell(void (*tell)(const char *reason));
