/* SPDX-License-Identifier: Apache-2.0 */
/* The control plane of a single process that owns all ranks. */
#include "runtime/api/control.h"

static void *
single_open(uint32_t ranks, int64_t deadline_us, LhControlPlace *place, GError **error)
{
    static char nothing;

    (void)deadline_us;
    (void)error;
    *place = (LhControlPlace){ .first = 0, .count = MAX(ranks, 1) };
    return &nothing;
}

static bool
single_barrier(void *control, GError **error)
{
    (void)control;
    (void)error;
    return true;
}

static bool
single_gather(void *control, const GByteArray *bytes, gsize limit, GByteArray *all, GError **error)
{
    (void)control;
    (void)limit;
    (void)error;
    g_byte_array_append(all, bytes->data, bytes->len);
    return true;
}

static void
single_close(void *control)
{
    (void)control;
}

const LhControl lh_control_single = {
    .name = "single",
    .open = single_open,
    .barrier = single_barrier,
    .gather = single_gather,
    .share = single_gather,
    .close = single_close,
};
