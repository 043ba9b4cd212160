/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The same work for many indices, on several threads, of which the caller's is one.
 */
#pragma once

#include <glib.h>

/* Calls @each with every index below @count once, on up to @threads threads, in rising order of
 * beginning, and returns when all calls have. Where a thread cannot be made, the others do its
 * work. @name is that of the threads. */
void lh_on_threads_each(const char *name, guint threads, guint count,
                        void (*each)(void *data, guint index), void *data);

/* The same; @each is also told which thread calls it, a number below @threads. */
void lh_on_numbered_threads_each(const char *name, guint threads, guint count,
                                 void (*each)(void *data, guint thread, guint index), void *data);
