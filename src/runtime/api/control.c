/* SPDX-License-Identifier: Apache-2.0 */
#include "runtime/api/control.h"

char *
lh_control_ranks_text(const GArray *ranks)
{
    GString *text = g_string_new(ranks->len == 1 ? "rank " : "ranks ");

    for (guint i = 0; i < MIN(ranks->len, LH_CONTROL_NAMED_MAX); i++)
        g_string_append_printf(text, "%s%u", i > 0 ? ", " : "", g_array_index(ranks, uint32_t, i));
    if (ranks->len > LH_CONTROL_NAMED_MAX)
        g_string_append_printf(text, " and %u more", ranks->len - LH_CONTROL_NAMED_MAX);
    return g_string_free(text, FALSE);
}

uint32_t
lh_control_local(void)
{
    static const char *const variables[] = { "LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK",
                                             "MPI_LOCALRANKID", "SLURM_LOCALID" };

    for (size_t i = 0; i < G_N_ELEMENTS(variables); i++) {
        const char *text = g_getenv(variables[i]);
        guint64 local;

        if (text != NULL && g_ascii_string_to_unsigned(text, 10, 0, LH_LOCAL_MAX, &local, NULL))
            return (uint32_t)local;
    }
    return 0;
}
