/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/process/processes.h"

#include "base/error.h"

#include <string.h>

#define TEXT_BYTES_MAX (64U << 20) /* the longest is a process's result for a whole plan */

bool
lh_processes_open(LhProcesses *p, const LhControl *control, int64_t deadline_us, GError **error)
{
    g_autoptr(GByteArray) mine = g_byte_array_new();
    g_autoptr(GByteArray) all = g_byte_array_new();
    const LhControl *table = lh_control_resolve(control);

    *p = (LhProcesses){ .control.table = table };
    p->control.state = table->open(0, deadline_us, &p->control.place, error);
    g_byte_array_append(mine, (const guint8 *)"", 1);
    if (p->control.state == NULL || !table->share(p->control.state, mine, 1, all, error)) {
        lh_processes_close(p);
        return false;
    }
    p->count = all->len;
    return true;
}

void
lh_processes_close(LhProcesses *p)
{
    if (p->control.state != NULL)
        p->control.table->close(p->control.state);
    p->control.state = NULL;
}

bool
lh_processes_first(const LhProcesses *p)
{
    return p->control.place.first == 0;
}

bool
lh_processes_wait(const LhProcesses *p, GError **error)
{
    return p->control.table->barrier(p->control.state, error);
}

/* All-gathers @bytes of each process; the result must have exactly @length bytes. */
static bool
share(const LhProcesses *p, const void *mine, size_t bytes, void *all, size_t length,
      GError **error)
{
    g_autoptr(GByteArray) sent = g_byte_array_new();
    g_autoptr(GByteArray) received = g_byte_array_new();

    g_byte_array_append(sent, mine, (guint)bytes);
    if (!p->control.table->share(p->control.state, sent, length, received, error))
        return false;
    if (received->len != length) {
        g_set_error_literal(error, LH_ERROR, LH_ERROR_RUNTIME,
                            "the processes have diverged: start all of them with the same options, "
                            "files and version");
        return false;
    }
    memcpy(all, received->data, length);
    return true;
}

bool
lh_processes_gather(const LhProcesses *p, double mine, double *all, GError **error)
{
    return share(p, &mine, sizeof(mine), all, p->count * sizeof(double), error);
}

bool
lh_processes_tell(const LhProcesses *p, double *values, size_t count, GError **error)
{
    const size_t bytes = count * sizeof(double);

    return share(p, values, lh_processes_first(p) ? bytes : 0, values, bytes, error);
}

char **
lh_processes_texts(const LhProcesses *p, const char *mine, GError **error)
{
    g_autoptr(GByteArray) sent = g_byte_array_new();
    g_autoptr(GByteArray) received = g_byte_array_new();
    g_autoptr(GPtrArray) texts = g_ptr_array_new_with_free_func(g_free);
    const char *at, *end;

    g_byte_array_append(sent, (const guint8 *)mine, (guint)strlen(mine) + 1);
    if (!p->control.table->share(p->control.state, sent, TEXT_BYTES_MAX, received, error))
        return NULL;
    at = (const char *)received->data;
    for (end = at + received->len; at < end && memchr(at, '\0', (size_t)(end - at)) != NULL;
         at += strlen(at) + 1)
        g_ptr_array_add(texts, g_strdup(at));
    if (texts->len != p->count) {
        g_set_error_literal(
            error, LH_ERROR, LH_ERROR_RUNTIME,
            "the data of other processes cannot be decoded: they run another version");
        return NULL;
    }
    g_ptr_array_add(texts, NULL);
    return (char **)g_ptr_array_free(g_steal_pointer(&texts), FALSE);
}

bool
lh_processes_agree(const LhProcesses *p, const char *what, const char *mine, GError **error)
{
    g_auto(GStrv) texts = lh_processes_texts(p, mine, error);

    if (texts == NULL)
        return false;
    for (uint32_t r = 1; r < p->count; r++) {
        if (strcmp(texts[r], texts[0]) == 0)
            continue;
        g_set_error(error, LH_ERROR, LH_ERROR_RUNTIME,
                    "rank %u has a different %s (\"%s\") from rank 0 (\"%s\"): start all processes "
                    "with the same options, files and version",
                    r, what, texts[r], texts[0]);
        return false;
    }
    return true;
}
