/* See the header. */
#include "base/threads.h"

#include <stdatomic.h>

typedef struct {
    void (*work)(void *data);
    void *data;
} Task;

static gpointer
run(gpointer data)
{
    const Task *task = data;

    task->work(task->data);
    return NULL;
}

void
lh_on_threads(const char *name, guint threads, void (*work)(void *data), void *data)
{
    g_autofree GThread **others = g_new(GThread *, threads);
    Task task = { work, data };

    for (guint i = 1; i < threads; i++)
        others[i] = g_thread_new(name, run, &task);
    work(data);
    for (guint i = 1; i < threads; i++)
        g_thread_join(others[i]);
}

typedef struct {
    void (*each)(void *data, guint index);
    void *data;
    guint count;
    atomic_uint taken;
} Numbers;

static void
take_numbers(void *data)
{
    Numbers *numbers = data;
    guint next;

    while ((next = atomic_fetch_add(&numbers->taken, 1)) < numbers->count)
        numbers->each(numbers->data, next);
}

void
lh_on_threads_each(const char *name, guint threads, guint count,
                   void (*each)(void *data, guint index), void *data)
{
    Numbers numbers = { .each = each, .data = data, .count = count };

    lh_on_threads(name, MAX(MIN(threads, count), 1), take_numbers, &numbers);
}
