/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs the same work for many indices on several threads, including the caller's.
 */
#pragma once

#include <glib.h>

/* Calls @each once for every index below @count, started in ascending order, on up to @threads
 * threads; returns when all calls have. If a thread cannot be created, the others do its work. The
 * threads are named @name. */
void lh_on_threads_each(const char *name, guint threads, guint count,
                        void (*each)(void *data, guint index), void *data);

/* The same; @each also gets the number of its thread, below @threads. */
void lh_on_numbered_threads_each(const char *name, guint threads, guint count,
                                 void (*each)(void *data, guint thread, guint index), void *data);
