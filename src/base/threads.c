/* SPDX-License-Identifier: Apache-2.0 */
#include "base/threads.h"

#include <stdatomic.h>

typedef struct {
    void (*each)(void *data, guint thread, guint index);
    void *data;
    guint count;
    atomic_uint taken, threads; /* the next index, the next thread's number */
} Indices;

static gpointer
take_indices(gpointer data)
{
    Indices *indices = data;
    const guint thread = atomic_fetch_add(&indices->threads, 1);
    guint next;

    while ((next = atomic_fetch_add(&indices->taken, 1)) < indices->count)
        indices->each(indices->data, thread, next);
    return NULL;
}

void
lh_on_numbered_threads_each(const char *name, guint threads, guint count,
                            void (*each)(void *data, guint thread, guint index), void *data)
{
    Indices indices = { .each = each, .data = data, .count = count };
    g_autoptr(GPtrArray) others = g_ptr_array_new();

    for (guint i = 1; i < MIN(threads, count); i++) {
        GThread *thread = g_thread_try_new(name, take_indices, &indices, NULL);

        if (thread != NULL)
            g_ptr_array_add(others, thread);
    }
    take_indices(&indices);
    for (guint i = 0; i < others->len; i++)
        g_thread_join(g_ptr_array_index(others, i));
}

typedef struct {
    void (*each)(void *data, guint index);
    void *data;
} Unnumbered;

static void
call_unnumbered(void *data, guint thread, guint index)
{
    const Unnumbered *unnumbered = data;

    (void)thread;
    unnumbered->each(unnumbered->data, index);
}

void
lh_on_threads_each(const char *name, guint threads, guint count,
                   void (*each)(void *data, guint index), void *data)
{
    Unnumbered unnumbered = { each, data };

    lh_on_numbered_threads_each(name, threads, count, call_unnumbered, &unnumbered);
}
