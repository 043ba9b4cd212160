/*
 * The same work on several threads, of which the caller's is one. What is to be done next they find
 * out among themselves.
 */
#pragma once

#include <glib.h>

/* Returns when @work has returned on all @threads (at least 1). @name is that of the threads. */
void lh_on_threads(const char *name, guint threads, void (*work)(void *data), void *data);

/* Calls @each with every number below @count once, on up to @threads threads, in rising order of
 * beginning. */
void lh_on_threads_each(const char *name, guint threads, guint count,
                        void (*each)(void *data, guint index), void *data);
