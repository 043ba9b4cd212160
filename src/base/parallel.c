/* SPDX-License-Identifier: Apache-2.0 */
#include "base/parallel.h"

#include <glib.h>

typedef struct {
    uint32_t pieces;
    void (*run)(void *data, unsigned thread, uint32_t piece);
    void *data;
    gint next, threads; /* atomic: the next piece, the next thread */
} Work;

static void *
work_main(void *data)
{
    Work *work = data;
    const unsigned thread = (unsigned)g_atomic_int_add(&work->threads, 1);
    uint32_t piece;

    while ((piece = (uint32_t)g_atomic_int_add(&work->next, 1)) < work->pieces)
        work->run(work->data, thread, piece);
    return NULL;
}

void
lh_parallel(unsigned threads, uint32_t pieces,
            void (*run)(void *data, unsigned thread, uint32_t piece), void *data)
{
    Work work = { .pieces = pieces, .run = run, .data = data };
    g_autoptr(GPtrArray) others = g_ptr_array_new();

    for (unsigned i = 1; i < MIN(threads, pieces); i++) {
        GThread *thread = g_thread_try_new("parallel", work_main, &work, NULL);

        if (thread != NULL) /* else fewer do the work */
            g_ptr_array_add(others, thread);
    }
    work_main(&work);
    for (guint i = 0; i < others->len; i++)
        g_thread_join(g_ptr_array_index(others, i));
}
